"""`compact --watch`: compacts files as they arrive, until a signal. Lists the sources; needs no Spark."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from threading import Event

from compactor.api.compact_result import CompactResult
from compactor.api.folder_run import FolderRun
from compactor.cli.ui.compact_screen import (
    envelope_fields,
    field_lines,
    hole_fields,
    left_out_fields,
    quarantined_fields,
)
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import print_json
from compactor.cli.ui.signals import StopSignals
from compactor.cli.ui.terminal import echo
from compactor.core.errors import CompactorError, OperatorError, SettingsError
from compactor.core.inputs.source_places import in_words
from compactor.core.layout import is_s3
from compactor.core.ports import ObjectInfo
from compactor.core.rules.backoff import pause_seconds
from compactor.core.text.formatting import count, duration
from compactor.sources.folders.planning import FolderPlanner
from compactor.sources.plan import Plan
from compactor.wiring.app import App
from compactor.wiring.engine_choice import installed_engine
from compactor.wiring.folder import check_folders

POLL_SECONDS = 1.0
POLL_S3_SECONDS = 10.0  # listings cost money
_LISTING_SHARE = 10  # a listing may take a tenth of the time
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
_COMES_LATER = frozenset({"unsettled", "undecided", "changed"})


@dataclass
class FolderWatch:
    """Repeats a call of `compact` whenever there is a batch of new files.

    Attributes:
        run: The call.
        max_wait_seconds: How long a batch waits after its first file.
        as_json: Whether to print one JSON document per batch.
    """

    run: FolderRun
    max_wait_seconds: float
    as_json: bool = False
    _stopped: Event = field(default_factory=Event, init=False)
    _files: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)
    _shown: set[str] = field(default_factory=set, init=False)

    def watch(self) -> ExitCode:
        """Watch until a signal; returns how it ended.

        Raises:
            OperatorError: An operator must act.
        """
        app = App(self.run.folder.settings)
        if installed_engine(app.settings) != "native":
            raise SettingsError(["--watch: the engine is spark -> expected the native one: install its wheel"])
        check_folders(self.run.folder.paths)
        planner = self.run.folder_planner(app)
        with StopSignals() as signals:
            signals.attach(self._stop)
            self.run = replace(self.run, stopping=lambda: nullcontext(signals), may_be_empty=True, sleep=self._pause)
            say(f"watching {in_words(self.run.folder.paths.sources)}{_how(planner)}; Ctrl-C ends it")
            code = self._batches(planner, app.manifest_bytes, signals)
        echo(f"watched: {count(self._files, 'file')}, {count(self._rows, 'row')}", err=self.as_json)
        return code

    def _batches(self, planner: FolderPlanner, target_bytes: Callable[[], float], signals: StopSignals) -> ExitCode:
        code, failures = ExitCode.DONE, 0
        while not self._stopped.is_set():
            try:
                code, known = self._batch(planner, signals)
                failures = 0
                self._wait_for_batch(planner, known, target_bytes())
            except OperatorError:
                raise
            except CompactorError as exc:
                failures += 1
                self._tell([f"{exc}; trying again"])
                self._pause(
                    pause_seconds(
                        failures,
                        first_seconds=_FIRST_PAUSE_SECONDS,
                        longest_seconds=_LONGEST_PAUSE_SECONDS,
                        chance=1.0,
                    )
                )
        return code

    def _batch(self, planner: FolderPlanner, signals: StopSignals) -> tuple[ExitCode, dict[str, ObjectInfo]]:
        """Compact the available files; returns how that ended, and the files that need no batch as they are."""
        listed = {info.uri: info for info in planner.data(Plan())}
        try:
            result = self.run.run()
        finally:
            signals.attach(self._stop)
            self.run = replace(self.run)
        self._show(result)
        self.run = replace(self.run, verifies_all=False)
        if result.plan.held:
            return result.exit_code, {}
        for each in result.plan.left_out:
            if each.reason in _COMES_LATER:
                listed.pop(each.uri, None)
        for uri in result.plan.unfinished:
            if uri in listed:
                listed[uri] = replace(listed[uri], etag="")
        return result.exit_code, listed

    def _wait_for_batch(self, planner: FolderPlanner, known: dict[str, ObjectInfo], target_bytes: float) -> None:
        """Wait until new files, or new lines, fill a manifest, or the first of them has waited long enough."""
        since: float | None = None
        while not self._stopped.is_set():
            began = time.monotonic()
            new_bytes = list(_new_bytes(planner.data(Plan()), known))
            now = time.monotonic()
            since = (since or now) if new_bytes else None
            waited = now - since if since is not None else 0.0
            if new_bytes and (sum(new_bytes) >= target_bytes or waited >= self.max_wait_seconds):
                return
            pause = max(_poll_seconds(planner), _LISTING_SHARE * (now - began))
            self._pause(pause if since is None else min(pause, self.max_wait_seconds - waited))

    def _stop(self) -> None:
        self._stopped.set()

    def _pause(self, seconds: float) -> None:
        self._stopped.wait(max(seconds, 0))

    def _show(self, result: CompactResult) -> None:
        """Print the results of a batch; each file left out appears once per reason."""
        self._files += result.new_files
        self._rows += result.work.records
        if self.as_json:
            print_json(result, on_one_line=True)
        elif result.work.committed or result.work.dead_lettered:
            rejects = result.work.rejected_lines
            also = f", {count(rejects, 'rejected line')}" if rejects else ""
            files = count(result.new_files, "file")
            echo(f"{files}, {count(result.work.records, 'row')}{also} in {duration(result.seconds)}")
        found = [*left_out_fields(result.plan.left_out), *envelope_fields(result.envelopes or ())]
        found += hole_fields(result.holes or ())
        self._tell([*field_lines(found), *result.unfinished_lines, *_faults(result)])

    def _tell(self, lines: list[str]) -> None:
        for line in lines:
            if line not in self._shown:
                say(line)
        self._shown = set(lines)


def _new_bytes(files: Iterable[ObjectInfo], known: Mapping[str, ObjectInfo]) -> Iterator[int]:
    """For each file that may have something new, how many bytes that is."""
    for info in files:
        before = known.get(info.uri)
        if before is None or before.etag != info.etag:
            grown = info.size_bytes - (before.size_bytes if before is not None else 0)
            yield grown if grown >= 0 else info.size_bytes


def _how(planner: FolderPlanner) -> str:
    """The polling interval, if it is longer than a moment."""
    seconds = _poll_seconds(planner)
    return f", listed every {duration(seconds)}" if seconds > POLL_SECONDS else ""


def _poll_seconds(planner: FolderPlanner) -> float:
    return POLL_S3_SECONDS if any(is_s3(source.folder) for source in planner.sources) else POLL_SECONDS


def _faults(result: CompactResult) -> list[str]:
    """Verification findings that need an operator, one line each."""
    if result.verified is None:
        return []
    found = quarantined_fields(result.verified)
    return [f"{name}: {value if isinstance(value, str) else '; '.join(value)}" for name, value in found]

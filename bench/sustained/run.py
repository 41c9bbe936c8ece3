"""Runs the whole job under a steady load, and proves what it did."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.inputs import Input, check_room
from bench.sustained.building import Built
from bench.sustained.feeder import Fed
from bench.sustained.processes import ProcessorTime, Watch, started
from bench.sustained.proof import Proved, Prover
from compactor.core.layout import is_delivery
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from tests.faults.s3_lake import as_toml

ROOM_BYTES = 8_000_000_000
"""For the output of a few manifests, and as much again in staging; links to input take no room."""

_FREE_BYTES = 2_000_000_000  # in case the disk fills up all the same
_LOOK_SECONDS = 1.0
_TELL_SECONDS = 30.0
_START_SECONDS = 180.0
_END_SECONDS = 120.0
_DRAIN_SECONDS = 600.0

Document = Mapping[str, Mapping[str, object]]


class NotHeldError(Exception):
    """The run came to nothing: a part of the job ended before its time, or does not come to its end."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is fed.

    Attributes:
        seconds: How long.
        bytes_per_second: The rate.
    """

    seconds: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    Attributes:
        fed: What came in.
        built: What builder and sealer did.
        proved: What the job did, as the ledger and the files say.
        processor_shares: Of one core, by the part of the job, while it was fed.
        machine_share: The same of all that ran on the machine.
        peak_memory_bytes: Of all parts together.
        drain_seconds: From the end of the feeding to that of the last manifest.
    """

    fed: Fed
    built: Built
    proved: Proved
    processor_shares: dict[str, float]
    machine_share: float
    peak_memory_bytes: int
    drain_seconds: float


def run_sustained(source: Input, work: Path, load: Load, settings: Document, tell: Callable[[str], object]) -> Result:
    """Start the job, feed it, and let it drain; the files of a manifest are removed as soon as it is verified.

    Args:
        source: The ready-made files.
        work: A folder on their disk, which gets the logs.
        load: What is fed.
        settings: Of the job, without its places.
        tell: Called with a line on how it goes, now and then.

    Raises:
        NotHeldError: A part of the job ended before its time, or does not come to its end.
        OSError: There is not enough room.
    """
    check_room(work, ROOM_BYTES)
    lines = {file.name: file.read_bytes().count(b"\n") for file in source.folder.iterdir()}
    with _folder(work) as home, ExitStack() as stack:
        run = _Run(home, work, {**settings, **_places(home)}, lines, stack, tell)
        run.start()
        return run.feed(source.folder, load)


@contextmanager
def _folder(work: Path) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="sustained-", dir=work))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _places(home: Path) -> dict[str, dict[str, object]]:
    return {
        "paths": {place: str(home / place) for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [str(home / "raw")]},
    }


class _Run:
    """One run, in the order of its methods.

    Args:
        home: An empty folder for everything but the logs.
        logs: The folder for these, which outlive the run.
        settings: Of the job.
        lines: Of each ready-made file, by its name.
        stack: Ends what was started.
        tell: Called with a line on how it goes.
    """

    def __init__(
        self,
        home: Path,
        logs: Path,
        settings: Document,
        lines: Mapping[str, int],
        stack: ExitStack,
        tell: Callable[[str], object],
    ) -> None:
        self._home = home
        self._logs = logs
        self._config = home / "compactor.toml"
        self._config.write_text(as_toml(settings))
        self._app = App(parse_settings(settings))
        self._prover = Prover(self._app, lines)
        self._stack = stack
        self._tell = tell
        self._began = 0.0
        self._told = float("inf")  # nothing is told before it is fed
        self._parts: dict[str, subprocess.Popen[str]] = {}

    def start(self) -> None:
        """Start the streaming job, and come back when it is at work."""
        self._start("job", "compactor", "--log-format", "json", "--config", str(self._config), "run")
        self._await(lambda: bool(self._app.runs.living()), _START_SECONDS, "the job to start")

    def feed(self, source: Path, load: Load) -> Result:
        """Feed it, let it drain, and end it."""
        self._start_feeding(source, load)
        self._told = self._began = time.monotonic()
        watch = self._stack.enter_context(
            Watch({**{name: part.pid for name, part in self._parts.items()}, "verify and remove": os.getpid()})
        )
        before = ProcessorTime.now(watch)
        self._await(lambda: self._has_ended("feeder"), 2 * load.seconds + _END_SECONDS, "the feeder to end")
        after, ended = ProcessorTime.now(watch), time.monotonic()
        fed = Fed(**self._report("feeder"))
        proved = self._prover.proved
        self._await(lambda: self._has_ended("builder"), _DRAIN_SECONDS, "the builder to end")
        self._await(
            lambda: len(proved.passages) >= fed.files or bool(proved.faults), _DRAIN_SECONDS, "the job to drain"
        )
        drain_seconds = time.monotonic() - ended
        self._parts["job"].terminate()  # as Ctrl-C: it ends in order
        self._await(lambda: self._has_ended("job"), _END_SECONDS, "the job to end")
        self._prover.look()
        self._prover.finish(fed.files)
        shares, machine_share = after.shares_since(before)
        built = Built(**self._report("builder"))
        return Result(fed, built, proved, shares, machine_share, watch.peak_bytes, drain_seconds)

    def _start_feeding(self, source: Path, load: Load) -> None:
        raw = self._home / "raw"
        raw.mkdir()
        options = {
            "source": source,
            "raw": raw,
            "day": datetime.now(UTC).date(),
            "megabytes-per-second": load.bytes_per_second / 1e6,
            "seconds": load.seconds,
            "report": self._home / "feeder.json",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        feeder = self._start("feeder", "bench.sustained.feeder", *arguments, stdout=subprocess.PIPE)
        report = f"--report={self._home / 'builder.json'}"
        self._start("builder", "bench.sustained.building", f"--config={self._config}", report, stdin=feeder.stdout)
        if feeder.stdout is not None:
            feeder.stdout.close()  # the builder's own by now, which so sees its end

    def _start(self, name: str, *module: str, **pipes: Any) -> "subprocess.Popen[str]":
        part = self._stack.enter_context(started(module, self._log(name), **pipes))
        self._parts[name] = part
        return part

    def _log(self, name: str) -> Path:
        return self._logs / f"sustained-{name}.log"

    def _report(self, name: str) -> Any:
        return json.loads((self._home / f"{name}.json").read_text())

    def _has_ended(self, name: str) -> bool:
        return self._parts[name].poll() is not None

    def _await(self, happened: Callable[[], bool], patience_seconds: float, what: str) -> None:
        """Verify and remove, until something has happened."""
        deadline = time.monotonic() + patience_seconds
        while not happened():
            self._prover.look()
            self._check(what, deadline)
            if time.monotonic() - self._told >= _TELL_SECONDS:
                self._told += _TELL_SECONDS
                self._tell(self._how_it_goes())
            time.sleep(_LOOK_SECONDS)
        self._check_parts()

    def _check_parts(self) -> None:
        for name in ("job", "builder", "feeder"):  # a feeder without a builder fails as well
            part = self._parts.get(name)
            if part is not None and part.poll():
                raise NotHeldError(f"the {name} ended with {part.returncode}; see {self._log(name)}")

    def _check(self, what: str, deadline: float) -> None:
        if self._prover.proved.faults:
            raise NotHeldError(self._prover.proved.faults[0])
        self._check_parts()
        if time.monotonic() > deadline:
            raise NotHeldError(f"waited in vain for {what}; see {self._log('job')} and {self._log('builder')}")
        if shutil.disk_usage(self._home).free < _FREE_BYTES:
            raise NotHeldError(f"{self._home}: less than {_FREE_BYTES / 1e9:.0f} GB are free")

    def _how_it_goes(self) -> str:
        proved, seconds = self._prover.proved, time.monotonic() - self._began
        waiting = sum(is_delivery(info.uri) for info in self._app.store.list(self._app.layout.manifests_folder))
        done = sum(passage.size_bytes for passage in proved.passages.values()) / 1e9
        return f"{seconds:4.0f} s  {proved.manifests} manifests verified, {done:.1f} GB; {waiting} manifests waiting"

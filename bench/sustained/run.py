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
from compactor.settings.toml import toml_of
from compactor.wiring.app import App

ROOM_BYTES = 8_000_000_000
"""Room for the output of a few manifests and their staging; links to input take none."""

_FREE_BYTES = 2_000_000_000  # stop before the disk is full
_POLL_SECONDS = 1.0
_TELL_SECONDS = 30.0
_START_SECONDS = 180.0
_END_SECONDS = 120.0
_DRAIN_SECONDS = 600.0

Document = Mapping[str, Mapping[str, object]]


class NotHeldError(Exception):
    """The run failed: a process of the job ended too early, or does not end."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: how long it lasts, and its rate."""

    seconds: float
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        fed: What the feeder announced.
        built: What builder and sealer did.
        proved: What the job did, by its ledger and files.
        processor_shares: Cores in use during the feeding, by the process of the job.
        machine_share: Cores in use during the feeding, of the whole machine.
        peak_memory_bytes: The peak memory of all processes together.
        drain_seconds: From the end of the feeding to the end of the last manifest.
    """

    fed: Fed
    built: Built
    proved: Proved
    processor_shares: dict[str, float]
    machine_share: float
    peak_memory_bytes: int
    drain_seconds: float


def run_sustained(source: Input, work: Path, load: Load, settings: Document, tell: Callable[[str], object]) -> Result:
    """Start the job, feed it, and let it drain. The files of a manifest are deleted as soon as it is verified.

    Args:
        source: The ready-made files.
        work: A folder on the same disk; it gets the logs.
        load: The load.
        settings: The settings of the job, without its places.
        tell: Called with a line of progress now and then.

    Raises:
        NotHeldError: A process of the job ended too early, or does not end.
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
        logs: The folder for the logs, which outlive the run.
        settings: The settings of the job.
        lines: The number of lines of each ready-made file, by its name.
        stack: Ends the processes.
        tell: Called with a line of progress.
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
        self._config.write_text(toml_of(settings))
        self._app = App(parse_settings(settings))
        self._prover = Prover(self._app, lines)
        self._stack = stack
        self._tell = tell
        self._began = 0.0
        self._told = float("inf")  # no progress is printed before the feeding
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self) -> None:
        """Start the streaming job, and wait until it has a heartbeat."""
        self._start("job", "compactor", "--log-format", "json", "--config", str(self._config), "run")
        self._await(lambda: bool(self._app.runs.living()), _START_SECONDS, "the job to start")

    def feed(self, source: Path, load: Load) -> Result:
        """Feed the job, let it drain, and end it."""
        self._start_feeding(source, load)
        self._told = self._began = time.monotonic()
        watch = self._stack.enter_context(
            Watch(
                {**{name: process.pid for name, process in self._processes.items()}, "verify and remove": os.getpid()}
            )
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
        self._processes["job"].terminate()  # as Ctrl-C: it ends in order
        self._await(lambda: self._has_ended("job"), _END_SECONDS, "the job to end")
        self._prover.check()
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
            feeder.stdout.close()  # so that the builder, which has its own copy, sees the end

    def _start(self, name: str, *module: str, **pipes: Any) -> "subprocess.Popen[str]":
        self._processes[name] = self._stack.enter_context(started(module, self._log(name), **pipes))
        return self._processes[name]

    def _log(self, name: str) -> Path:
        return self._logs / f"sustained-{name}.log"

    def _report(self, name: str) -> Any:
        return json.loads((self._home / f"{name}.json").read_text())

    def _has_ended(self, name: str) -> bool:
        return self._processes[name].poll() is not None

    def _await(self, happened: Callable[[], bool], patience_seconds: float, what: str) -> None:
        """Verify and delete manifests until `happened` is true."""
        deadline = time.monotonic() + patience_seconds
        while not happened():
            self._prover.check()
            self._check(what, deadline)
            if time.monotonic() - self._told >= _TELL_SECONDS:
                self._told += _TELL_SECONDS
                self._tell(self._how_it_goes())
            time.sleep(_POLL_SECONDS)
        self._check_processes()

    def _check_processes(self) -> None:
        for name in ("job", "builder", "feeder"):  # a feeder without a builder fails as well
            process = self._processes.get(name)
            if process is not None and process.poll():
                raise NotHeldError(f"the {name} ended with {process.returncode}; see {self._log(name)}")

    def _check(self, what: str, deadline: float) -> None:
        if self._prover.proved.faults:
            raise NotHeldError(self._prover.proved.faults[0])
        self._check_processes()
        if time.monotonic() > deadline:
            raise NotHeldError(f"timed out waiting for {what}; see {self._log('job')} and {self._log('builder')}")
        if shutil.disk_usage(self._home).free < _FREE_BYTES:
            raise NotHeldError(f"{self._home}: less than {_FREE_BYTES / 1e9:.0f} GB are free")

    def _how_it_goes(self) -> str:
        proved, seconds = self._prover.proved, time.monotonic() - self._began
        waiting = sum(is_delivery(info.uri) for info in self._app.store.list(self._app.layout.manifests_folder))
        done = sum(passage.size_bytes for passage in proved.passages.values()) / 1e9
        return f"{seconds:4.0f} s  {proved.manifests} manifests verified, {done:.1f} GB; {waiting} manifests waiting"

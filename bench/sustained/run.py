"""Runs the whole job under a steady load, and proves what it did."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.inputs import Input, check_room
from bench.sustained.building import Built
from bench.sustained.feeder import Fed
from bench.sustained.places import RAW, Place
from bench.sustained.processes import ProcessorTime, Watch, started
from bench.sustained.proof import Proved, Prover
from bench.sustained.shards import Shards, Trouble
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
    """The load: how long it lasts, its rate, and what the job goes through meanwhile."""

    seconds: float
    bytes_per_second: float
    trouble: Trouble


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
        kills: How often a process of the job was killed.
        resizes: How often its number of processes changed.
    """

    fed: Fed
    built: Built
    proved: Proved
    processor_shares: dict[str, float]
    machine_share: float
    peak_memory_bytes: int
    drain_seconds: float
    kills: int = 0
    resizes: int = 0


def run_sustained(
    source: Input,
    work: Path,
    load: Load,
    settings: Document,
    tell: Callable[[str], object],
    place: Callable[[Path, Input], AbstractContextManager[Place]],
) -> Result:
    """Start the job, feed it, and let it drain. The files of a manifest are deleted as soon as it is verified.

    Args:
        source: The ready-made files.
        work: A folder on the same disk; it gets the logs.
        load: The load.
        settings: The settings of the job, without its places.
        tell: Called with a line of progress now and then.
        place: Makes the places of a run in an empty folder.

    Raises:
        NotHeldError: A process of the job ended too early, or does not end.
        OSError: There is not enough room.
    """
    check_room(work, ROOM_BYTES)
    lines = {file.name: file.read_bytes().count(b"\n") for file in source.folder.iterdir()}
    with _folder(work) as home, place(home, source) as where, ExitStack() as stack:
        run = _Run(home, work, {**settings, **where.settings}, where, load, lines, stack, tell)
        run.start()
        return run.feed()


@contextmanager
def _folder(work: Path) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="sustained-", dir=work))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


class _Run:
    """One run, in the order of its methods.

    Args:
        home: An empty folder for everything but the logs.
        logs: The folder for the logs, which outlive the run.
        settings: The settings of the job.
        place: The places of its data.
        load: The load.
        lines: The number of lines of each ready-made file, by its name.
        stack: Ends the processes.
        tell: Called with a line of progress.
    """

    def __init__(
        self,
        home: Path,
        logs: Path,
        settings: Document,
        place: Place,
        load: Load,
        lines: Mapping[str, int],
        stack: ExitStack,
        tell: Callable[[str], object],
    ) -> None:
        self._home = home
        self._logs = logs
        self._config = home / "compactor.toml"
        self._config.write_text(toml_of(settings))
        self._app = App(parse_settings(settings))
        self._prover = Prover(self._app, lines, place.path)
        self._place = place
        self._load = load
        self._stack = stack
        self._tell = tell
        self._began = 0.0
        self._told = float("inf")  # no progress is printed before the feeding
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._shards = Shards(self._start_shard, load.trouble, load.seconds)
        self._watch: Watch | None = None

    def start(self) -> None:
        """Start the streaming job, and wait until it has a heartbeat."""
        self._shards.grow()
        self._await(lambda: bool(self._app.runs.living()), _START_SECONDS, "the job to start")

    def feed(self) -> Result:
        """Feed the job, let it drain, and end it."""
        seconds = self._load.seconds
        self._start_feeding()
        self._told = self._began = time.monotonic()
        roots = {**{name: process.pid for name, process in self._processes.items()}, **self._place.servers}
        watch = self._watch = self._stack.enter_context(Watch({**roots, "verify and remove": os.getpid()}))
        before = ProcessorTime.now(watch)
        self._await(lambda: self._has_ended("feeder"), 2 * seconds + _END_SECONDS, "the feeder to end", self._disturb)
        after, ended = ProcessorTime.now(watch), time.monotonic()
        fed = Fed(**self._report("feeder"))
        proved = self._prover.proved
        self._await(lambda: self._has_ended("builder"), _DRAIN_SECONDS, "the builder to end")
        self._await(
            lambda: len(proved.passages) >= fed.files or bool(proved.faults), _DRAIN_SECONDS, "the job to drain"
        )
        drain_seconds = time.monotonic() - ended
        self._shards.stop()  # as Ctrl-C: it ends in order
        self._await(lambda: self._shards.has_ended, _END_SECONDS, "the job to end")
        self._prover.check()
        self._prover.finish(fed.files)
        shares, machine_share = after.shares_since(before)
        built = Built(**self._report("builder"))
        return Result(
            fed,
            built,
            proved,
            shares,
            machine_share,
            watch.peak_bytes,
            drain_seconds,
            self._shards.killed,
            self._shards.resized,
        )

    def _disturb(self) -> None:
        self._shards.turn(time.monotonic() - self._began)

    def _start_feeding(self) -> None:
        place, load, report = self._place, self._load, self._home / "feeder.json"
        raw, etags = place.path(f"{place.root}/{RAW}"), self._home / "etags.json"
        raw.mkdir()
        etags.write_text(json.dumps(dict(place.etags)))
        region = self._app.settings.aws.region
        queue = [f"--queue={place.queue}"] if place.queue else []
        options = {
            "source": place.ready,
            "etags": etags,
            "raw": raw,
            "raw-uri": f"{place.root}/{RAW}",
            "day": datetime.now(UTC).date(),
            "megabytes-per-second": load.bytes_per_second / 1e6,
            "seconds": load.seconds,
            "report": report,
            "region": region,
        }
        arguments = [*(f"--{name}={value}" for name, value in options.items()), *queue]
        pipe = None if queue else subprocess.PIPE
        feeder = self._start("feeder", "bench.sustained.feeder", *arguments, stdout=pipe)
        reads = [*queue, f"--end={report}", f"--claims={self._home / 'claims.sqlite'}"] if queue else []
        own = [f"--config={self._config}", f"--report={self._home / 'builder.json'}", *reads]
        self._start("builder", "bench.sustained.building", *own, stdin=feeder.stdout or subprocess.DEVNULL)
        if feeder.stdout is not None:
            feeder.stdout.close()  # so that the builder, which has its own copy, sees the end

    def _start_shard(self, number: int, of: str) -> "subprocess.Popen[str]":
        name = f"job {of}" if of else "job"
        shard = ["--shard", of] if of else []
        command = ("compactor", "--log-format", "json", "--config", str(self._config), "run", *shard)
        log = self._log(f"job-{number}")
        process = self._stack.enter_context(started(command, log))
        self._processes[name] = process
        if self._watch is not None:
            self._watch.follow(name, process.pid)
        return process

    def _start(self, name: str, *module: str, **pipes: Any) -> "subprocess.Popen[str]":
        self._processes[name] = self._stack.enter_context(started(module, self._log(name), **pipes))
        return self._processes[name]

    def _log(self, name: str) -> Path:
        return self._logs / f"sustained-{name}.log"

    def _report(self, name: str) -> Any:
        return json.loads((self._home / f"{name}.json").read_text())

    def _has_ended(self, name: str) -> bool:
        return self._processes[name].poll() is not None

    def _await(
        self,
        happened: Callable[[], bool],
        patience_seconds: float,
        what: str,
        on_turn: Callable[[], None] = lambda: None,
    ) -> None:
        """Verify and delete manifests until `happened` is true."""
        deadline = time.monotonic() + patience_seconds
        while not happened():
            on_turn()
            self._prover.check()
            self._check(what, deadline)
            if time.monotonic() - self._told >= _TELL_SECONDS:
                self._told += _TELL_SECONDS
                self._tell(self._how_it_goes())
            time.sleep(_POLL_SECONDS)
        self._check_processes()

    def _check_processes(self) -> None:
        if fault := self._shards.fault():
            raise NotHeldError(f"{fault}; see {self._log('job-1')}")
        for name in ("builder", "feeder"):  # a feeder without a builder fails as well
            process = self._processes.get(name)
            if process is not None and process.poll():
                raise NotHeldError(f"the {name} ended with {process.returncode}; see {self._log(name)}")

    def _check(self, what: str, deadline: float) -> None:
        if self._prover.proved.faults:
            raise NotHeldError(self._prover.proved.faults[0])
        self._check_processes()
        if time.monotonic() > deadline:
            raise NotHeldError(f"timed out waiting for {what}; see {self._log('job-1')} and {self._log('builder')}")
        if shutil.disk_usage(self._home).free < _FREE_BYTES:
            raise NotHeldError(f"{self._home}: less than {_FREE_BYTES / 1e9:.0f} GB are free")

    def _how_it_goes(self) -> str:
        proved, seconds = self._prover.proved, time.monotonic() - self._began
        waiting = sum(is_delivery(info.uri) for info in self._app.store.list(self._app.layout.manifests_folder))
        done = sum(passage.size_bytes for passage in proved.passages.values()) / 1e9
        return f"{seconds:4.0f} s  {proved.manifests} manifests verified, {done:.1f} GB; {waiting} manifests waiting"

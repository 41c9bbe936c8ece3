"""Runs the job of ten streams, lets producers deliver to it with and without a flood, and reads what became of it."""

import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.streams.traffic import STREAMS, Delivery, Load, Traffic
from bench.sustained.processes import ProcessorTime, Watch, started
from compactor.core.documents.records import Done
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import is_delivery
from compactor.settings.settings import parse_settings
from compactor.settings.toml import toml, toml_of
from compactor.wiring.app import App

WARM_UP, CALM, FLOOD = "warm-up", "calm", "flood"
LENGTHS = {WARM_UP: 0.25, CALM: 1.0, FLOOD: 1.0}
"""The phases in their order, with their lengths as parts of what is asked for."""

_ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.5
_START_SECONDS = 180.0
_DRAIN_SECONDS = 600.0
_END_SECONDS = 120.0

Document = Mapping[str, Mapping[str, object]]


class NotHeldError(Exception):
    """The run failed: the job ended too early, or does not end."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What became of the manifests of a stream."""

    manifests: int = 0
    rows: int = 0
    rejected_lines: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    Attributes:
        deliveries: All manifests that were delivered.
        seconds: From the delivery of each until its rows were visible; without those that are not done.
        cores: Cores in use by the job, by phase.
        drain_seconds: From the end of the flood to the end of the last manifest.
        verified: The totals of each stream, as `verify` has them from its files.
        reported: The same, as `report` has them from the ledger.
        measured: The same, as the metrics of the job have them.
        discrepancies: How many `verify` found.
    """

    deliveries: tuple[Delivery, ...]
    seconds: Mapping[Delivery, float]
    cores: Mapping[str, float]
    drain_seconds: float
    verified: Mapping[str, Totals]
    reported: Mapping[str, Totals]
    measured: Mapping[str, Totals]
    discrepancies: int


def settings_at(home: Path, given: Document) -> dict[str, Any]:
    """The settings of ten streams whose places are in one folder."""
    raw = home / "raw"
    places = {place: str(home / place) for place in ("manifests", "output", "state")}
    streams = [{"name": name, "input": {"allowed_prefixes": [str(raw / name)]}} for name in STREAMS]
    return {**given, "paths": places, "input": {"allowed_prefixes": [str(raw)]}, "streams": streams}


def run_streams(home: Path, load: Load, given: Document, tell: Callable[[str], object]) -> Result:
    """Start the job, deliver to it phase by phase, and end it.

    Args:
        home: An empty folder.
        load: What is delivered in each phase.
        given: The settings of the job, without its places and streams.
        tell: Called with a line of progress now and then.

    Raises:
        NotHeldError: The job ended too early, or does not end.
    """
    with ExitStack() as stack:
        run = _Run(home, settings_at(home, given), stack)
        tell("starting the job ...")
        run.start()
        for phase, part in LENGTHS.items():
            tell(f"{phase} ...")
            drain_seconds = run.deliver(phase, replace(load, seconds=load.seconds * part))
        tell("verifying ...")
        return run.end(drain_seconds)


class _Run:
    """One run, in the order of its methods.

    Args:
        home: The folder of the run.
        settings: The settings of the job.
        stack: Ends the job.
    """

    def __init__(self, home: Path, settings: Mapping[str, Any], stack: ExitStack) -> None:
        self._config = home / "compactor.toml"
        self._config.write_text(_toml(settings))
        self._log = home / "job.log"
        of_job = parse_settings(settings)
        self._runs = App(of_job).runs
        self._apps = {name: App(of_job.of_stream(name)) for name in STREAMS}
        self._traffic = Traffic(self._apps, home)
        self._stack = stack
        self._cores: dict[str, float] = {}

    def start(self) -> None:
        """Start the job, and wait until it has a heartbeat."""
        module = ("compactor", "--log-format", "json", "--config", str(self._config), "run")
        self._job = self._stack.enter_context(started(module, self._log))
        self._watch = self._stack.enter_context(Watch({"job": self._job.pid}))
        self._await(lambda: bool(self._runs.living()), _START_SECONDS, "the job to start")

    def deliver(self, phase: str, load: Load) -> float:
        """Deliver for one phase, and wait until all of it is done; returns how long that took after the phase."""
        before = ProcessorTime.now(self._watch)
        self._traffic.run(phase, load, floods=phase == FLOOD)
        shares, _ = ProcessorTime.now(self._watch).shares_since(before)
        self._cores[phase] = sum(shares.values())
        began = time.monotonic()
        self._await(lambda: not self._is_waiting(), _DRAIN_SECONDS, "the job to finish all manifests")
        return time.monotonic() - began

    def end(self, drain_seconds: float) -> Result:
        """End the job as Ctrl-C does, and read what became of all manifests."""
        self._job.terminate()
        self._await(lambda: self._job.poll() is not None, _END_SECONDS, "the job to end")
        verified, reported = self._said("verify"), self._said("report")
        return Result(
            deliveries=tuple(self._traffic.delivered),
            seconds=dict(self._seconds()),
            cores=self._cores,
            drain_seconds=drain_seconds,
            verified={name: _totals(each, "manifests", "rows") for name, each in verified.items()},
            reported={name: _totals(each["totals"], "manifests", "rows") for name, each in reported.items()},
            measured=measured(self._log.read_text().splitlines()),
            discrepancies=sum(len(each["discrepancies"]) for each in verified.values()),
        )

    def _seconds(self) -> Iterator[tuple[Delivery, float]]:
        for each in self._traffic.delivered:
            app = self._apps[each.stream]
            with suppress(ObjectNotFound):
                yield each, app.ledger.record(app.layout.done(each.key), Done).done_at.timestamp() - each.at

    def _said(self, command: str) -> dict[str, Any]:
        """What a command says of each stream."""
        call = [sys.executable, "-m", "compactor", "--config", str(self._config), command, "--json"]
        done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=_ROOT)
        try:
            return {each["stream"]: each for each in json.loads(done.stdout)["streams"]}
        except ValueError as exc:
            raise NotHeldError(f"{command} ended with {done.returncode}: {done.stderr[-500:]}") from exc

    def _is_waiting(self) -> bool:
        return any(
            is_delivery(each.uri) for app in self._apps.values() for each in app.store.list(app.layout.manifests_folder)
        )

    def _await(self, happened: Callable[[], bool], patience_seconds: float, what: str) -> None:
        deadline = time.monotonic() + patience_seconds
        while not happened():
            if self._job.poll():
                raise NotHeldError(f"the job ended with {self._job.returncode}; see {self._log}")
            if time.monotonic() > deadline:
                raise NotHeldError(f"timed out waiting for {what}; see {self._log}")
            time.sleep(_POLL_SECONDS)


def _totals(found: Mapping[str, Any], manifests: str, rows: str, rejected: str = "rejected_lines") -> Totals:
    return Totals(found[manifests], found[rows], found[rejected])


def measured(log: Iterable[str]) -> dict[str, Totals]:
    """Add up the metrics of a log, by stream."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for line in log:
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "metrics.emitted":
            values = {name: value for name, value in event["values"].items() if isinstance(value, int | float)}
            found[event["namespace"].rpartition("/")[2]].update(values)
    return {name: _totals(each, "ManifestsCommitted", "RecordsOut", "RecordsRejected") for name, each in found.items()}


def _toml(settings: Mapping[str, Any]) -> str:
    sections = {name: section for name, section in settings.items() if name != "streams"}
    return f"streams = {toml(settings['streams'])}\n{toml_of(sections)}"

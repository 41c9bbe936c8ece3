"""Heartbeats distinguish living runs from dead ones, and carry requests to stop."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from compactor.core.documents.records import LIFE_SECONDS, RunHeartbeat
from compactor.core.errors import CompactorError
from compactor.core.layout import Layout, base_name
from compactor.core.ports import Clock, ObjectStore, Processes, ProcessName
from compactor.core.rules.sharding import Shard, shard_number
from compactor.telemetry.logs import log_event

TOLERATED_SECONDS = 2.0
"""Stores give times in whole seconds, and a response takes a while: smaller differences are ignored."""


@dataclass(slots=True)
class StoreClock:
    """This machine's clock, corrected by the store's times for objects that this process writes."""

    machine: Clock
    _ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.machine.now() - self._ahead

    def learn(self, modified_at: datetime) -> None:
        """Compare the clocks, given the store's time for an object that this process has just written."""
        ahead = self.machine.now() - modified_at
        self._ahead = ahead if abs(ahead.total_seconds()) >= TOLERATED_SECONDS else timedelta()


def runs_of_shards(living: Iterable[RunHeartbeat]) -> dict[int, str]:
    """The run that takes each shard's manifests, by shard number.

    A run that was asked to end takes no new manifests. If a shard has several runs, the latest takes all: runs with an
    old and a new shard count may coexist.
    """
    latest: dict[int, RunHeartbeat] = {}
    for beat in sorted(living, key=lambda beat: (beat.started_at, beat.run_id)):
        number = shard_number(beat.shard)
        if number is not None and not beat.is_stopping:
            latest[number] = beat
    return {number: beat.run_id for number, beat in latest.items()}


def works_alone(living: Iterable[RunHeartbeat]) -> bool:
    """Whether a run without a shard takes all manifests."""
    return any(shard_number(beat.shard) is None and not beat.is_stopping for beat in living)


HEARTBEAT_INTERVAL_SECONDS = 10.0
"""Until a run counts as dead, three heartbeats may be late or lost."""

IDLE_TIMES = 6
"""A run without work writes this many times less often, and lives this many times longer."""

FORGET_SECONDS = 3600.0

PROMPT_SECONDS = 5.0
"""A slower response is too imprecise to set the store's clock. The next heartbeat tries again."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that use one state prefix.

    Attributes:
        clock: For the age of heartbeats. The store dates these, so the writer's clock does not matter.
        processes: Detects at once that a run on the same machine is dead.
        shard: Only runs of this shard; None for all. Runs without a shard count for the first one.
    """

    store: ObjectStore
    layout: Layout
    clock: Clock
    processes: Processes
    shard: Shard | None = None

    def living(self) -> list[RunHeartbeat]:
        """The last heartbeat of each living run."""
        return [beat for beat, written_at in self._heartbeats() if self._is_fresh(beat, written_at)]

    def living_among(self, run_ids: Iterable[str]) -> frozenset[str]:
        """The living runs among these."""
        infos = (self.store.stat(self.layout.run(run_id)) for run_id in run_ids)
        beats = (
            (RunHeartbeat.find_readable(self.store, info.uri), info.modified_at) for info in infos if info is not None
        )
        return frozenset(beat.run_id for beat, written_at in beats if beat and self._is_fresh(beat, written_at))

    def stopping_among(self, run_ids: Iterable[str]) -> frozenset[str]:
        """The runs among these, living or dead, that were asked to end."""
        return frozenset(run_id for run_id in run_ids if self._was_asked_to_stop(run_id))

    def _was_asked_to_stop(self, run_id: str) -> bool:
        beat = RunHeartbeat.find_readable(self.store, self.layout.run(run_id))
        return (beat is not None and beat.is_stopping) or self.asked_to_stop_at(run_id) is not None

    def ask_to_stop(self, run_id: str) -> None:
        """Ask a run to end after the manifests in flight; it checks at each heartbeat."""
        self.store.put(self.layout.stop_request(run_id), b"{}")

    def asked_to_stop_at(self, run_id: str) -> datetime | None:
        """When a run was asked to end; None if it was not asked, or has ended."""
        found = self.store.stat(self.layout.stop_request(run_id))
        return found.modified_at if found else None

    def last_sign_at(self) -> datetime | None:
        """The time of the latest heartbeat of any run, living or dead; None if there is none."""
        return max((written_at for _, written_at in self._heartbeats()), default=None)

    def forget_dead(self) -> None:
        """Delete heartbeats and stop requests of long-dead runs."""
        limit = self.clock.now() - timedelta(seconds=FORGET_SECONDS)
        listed = self.store.list(self.layout.runs_folder)
        self.store.delete([info.uri for info in listed if info.modified_at < limit])

    def _heartbeats(self) -> Iterator[tuple[RunHeartbeat, datetime]]:
        """Each heartbeat, with the store's time for it."""
        for info in self.store.list(self.layout.runs_folder):
            beat = RunHeartbeat.find_readable(self.store, info.uri) if base_name(info.uri).endswith(".json") else None
            if beat is not None and (self.shard is None or (shard_number(beat.shard) or 1) == self.shard.number):
                yield beat, info.modified_at

    def _is_fresh(self, beat: RunHeartbeat, written_at: datetime) -> bool:
        if (self.clock.now() - written_at).total_seconds() > beat.life_seconds:
            return False
        return not self.processes.is_gone(ProcessName(beat.host, beat.process_id))


@dataclass(eq=False)
class Heartbeat:
    """The heartbeat of one run, written by its own thread while the context lasts.

    Attributes:
        process: The process of this run.
        release: The compactor's release.
        shard: This run's shard; empty if it takes all manifests.
        learn_time: Called with the store's time for each heartbeat that was written promptly.
    """

    store: ObjectStore
    layout: Layout
    clock: Clock
    run_id: str
    process: ProcessName
    release: str = ""
    shard: str = ""
    learn_time: Callable[[datetime], None] = lambda _: None
    _started_at: datetime = field(init=False)
    _ended: threading.Event = field(init=False, default_factory=threading.Event)
    _woken: threading.Event = field(init=False, default_factory=threading.Event)
    _is_stopping: bool = field(init=False, default=False)
    _is_idle: bool = field(init=False, default=False)
    _times: int = field(init=False, default=1)
    _thread: threading.Thread | None = field(init=False, default=None)
    _on_stop_request: Callable[[], None] = field(init=False, default_factory=lambda: lambda: None)

    def __post_init__(self) -> None:
        self._started_at = self.clock.now()

    def on_stop_request(self, stop: Callable[[], None]) -> None:
        """Register a function to call when this run is asked to end."""
        self._on_stop_request = stop

    def note_work(self, *, is_idle: bool) -> None:
        """Note whether the run has work. With the first work after a rest it writes at once.

        A shard writes often in any case: others take over from it as soon as it counts as dead.
        """
        self._is_idle = is_idle and not self.shard
        if self._times > 1 and not is_idle:
            self._woken.set()

    def note_stopping(self) -> None:
        """Write at once that this run was asked to end. Safe to call from a signal handler."""
        if not self._is_stopping:
            self._is_stopping = True
            self._woken.set()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._woken.clear()
        self._started_at = self.clock.now()
        self._is_idle, self._times = False, 1
        self._write_heartbeat()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.store.delete([self.layout.run(self.run_id), self.layout.stop_request(self.run_id)])
        except CompactorError as exc:
            log_event("run.heartbeat_left", error=exc)

    def _go_on(self) -> None:
        while True:
            self._woken.wait(self._times * HEARTBEAT_INTERVAL_SECONDS)
            self._woken.clear()
            if self._ended.is_set():
                return
            self._times = IDLE_TIMES if self._is_idle else 1
            self._write_heartbeat()

    def _write_heartbeat(self) -> None:
        begun_at = self.clock.now()
        beat = RunHeartbeat(
            run_id=self.run_id,
            host=self.process.host,
            process_id=self.process.process_id,
            release=self.release,
            started_at=self._started_at,
            heartbeat_at=begun_at,
            is_stopping=self._is_stopping,
            shard=self.shard,
            life_seconds=self._times * LIFE_SECONDS,
        )
        try:
            self.store.put(self.layout.run(self.run_id), beat.to_json())
            written = self.store.stat(self.layout.run(self.run_id))
            is_prompt = (self.clock.now() - begun_at).total_seconds() < PROMPT_SECONDS
            if written is not None and is_prompt:
                self.learn_time(written.modified_at)
            if self.store.stat(self.layout.stop_request(self.run_id)) is not None:
                log_event("run.asked_to_stop")
                self._on_stop_request()
        # Keep trying whatever happened: without heartbeats, a working run would count as dead.
        except Exception as exc:  # noqa: BLE001
            log_event("run.heartbeat_failed", error=exc)

"""Heartbeats: tell living runs from dead ones, and carry requests to stop."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from compactor.core.documents.records import RunHeartbeat
from compactor.core.errors import CompactorError, ObjectNotFound
from compactor.core.layout import Layout, base_name
from compactor.core.ports import Clock, ObjectStore, Processes, ProcessName
from compactor.core.rules.sharding import Shard, shard_number
from compactor.telemetry.logs import log_event

TOLERATED_SECONDS = 2.0
"""Stores tell times to the second, and an answer takes a while: a smaller difference is none."""


@dataclass(slots=True)
class StoreClock:
    """This machine's clock, set right by the times that the store gives to what this process writes.

    Attributes:
        machine: The clock of this machine.
    """

    machine: Clock
    _ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return self.machine.now() - self._ahead

    def learn(self, modified_at: datetime) -> None:
        """Compare the clocks.

        Args:
            modified_at: The store's time of an object that this process wrote just now.
        """
        ahead = self.machine.now() - modified_at
        self._ahead = ahead if abs(ahead.total_seconds()) >= TOLERATED_SECONDS else timedelta()


def runs_of_shards(living: Iterable[RunHeartbeat]) -> dict[int, str]:
    """The id of the run that takes the manifests of each shard, by the number of the shard.

    A run that was asked to end takes nothing new. Of several runs of one shard the latest takes all, however many
    shards each of them knows of: while their number is changed, both may be there for a while.
    """
    latest: dict[int, RunHeartbeat] = {}
    for beat in sorted(living, key=lambda beat: (beat.started_at, beat.run_id)):
        number = shard_number(beat.shard)
        if number is not None and not beat.is_stopping:
            latest[number] = beat
    return {number: beat.run_id for number, beat in latest.items()}


def works_alone(living: Iterable[RunHeartbeat]) -> bool:
    """Whether a run without a shard is there, which takes all manifests."""
    return any(shard_number(beat.shard) is None and not beat.is_stopping for beat in living)


HEARTBEAT_INTERVAL_SECONDS = 10.0
LIFE_SECONDS = 40.0
"""A run without a heartbeat for so long counts as dead: three heartbeats may be late or lost."""

FORGET_SECONDS = 3600.0

PROMPT_SECONDS = 5.0
"""An answer that takes longer tells too little about the store's clock. The next heartbeat asks again."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that work on one state prefix.

    Attributes:
        clock: Tells the age of heartbeats, which the store dates, so that the writer's clock does not matter.
        processes: Tells at once that a run of the same machine is dead.
        shard: Leaves out the runs of other shards; None for all runs. Those without a shard count as of the first.
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
        """Return those of the given runs that are alive."""
        infos = (self.store.stat(self.layout.run(run_id)) for run_id in run_ids)
        beats = ((self._heartbeat_of(info.uri), info.modified_at) for info in infos if info is not None)
        return frozenset(beat.run_id for beat, written_at in beats if beat and self._is_fresh(beat, written_at))

    def stopping_among(self, run_ids: Iterable[str]) -> frozenset[str]:
        """Return those of the given runs, living or dead, that were asked to end."""
        return frozenset(run_id for run_id in run_ids if self._was_asked_to_stop(run_id))

    def _was_asked_to_stop(self, run_id: str) -> bool:
        beat = self._heartbeat_of(self.layout.run(run_id))
        return (beat is not None and beat.is_stopping) or self.asked_to_stop_at(run_id) is not None

    def ask_to_stop(self, run_id: str) -> None:
        """Ask a run to end after the manifests in flight; it checks every `HEARTBEAT_INTERVAL_SECONDS`."""
        self.store.put(self.layout.stop_request(run_id), b"{}")

    def asked_to_stop_at(self, run_id: str) -> datetime | None:
        """Return when a run was asked to end; None if it was not asked, or has ended."""
        found = self.store.stat(self.layout.stop_request(run_id))
        return found.modified_at if found else None

    def last_sign_at(self) -> datetime | None:
        """Return the time of the latest heartbeat of any run, living or dead; None if there is none."""
        return max((written_at for _, written_at in self._heartbeats()), default=None)

    def forget_dead(self) -> None:
        """Delete the heartbeats and stop requests of runs that died long ago."""
        limit = self.clock.now() - timedelta(seconds=FORGET_SECONDS)
        listed = self.store.list(self.layout.runs_folder)
        self.store.delete([info.uri for info in listed if info.modified_at < limit])

    def _heartbeats(self) -> Iterator[tuple[RunHeartbeat, datetime]]:
        """Each heartbeat, with the store's time of it."""
        for info in self.store.list(self.layout.runs_folder):
            beat = self._heartbeat_of(info.uri) if base_name(info.uri).endswith(".json") else None
            if beat is not None and (self.shard is None or (shard_number(beat.shard) or 1) == self.shard.number):
                yield beat, info.modified_at

    def _heartbeat_of(self, uri: str) -> RunHeartbeat | None:
        with suppress(ObjectNotFound, ValueError):  # an unreadable heartbeat counts as none
            return RunHeartbeat.model_validate_json(self.store.read(uri))
        return None

    def _is_fresh(self, beat: RunHeartbeat, written_at: datetime) -> bool:
        if (self.clock.now() - written_at).total_seconds() > LIFE_SECONDS:
            return False
        return not self.processes.is_gone(ProcessName(beat.host, beat.process_id))


class Heartbeat:
    """The heartbeat of one run, written from a thread of its own as long as the context lasts.

    Args:
        store: Where heartbeats are.
        layout: Their places.
        clock: Gives the time of each heartbeat.
        run_id: This run.
        process: The process of this run.
        release: The release that this run is of.
        shard: The shard that this run works for; empty if it works on all manifests.
        learn_time: Called with the store's time of each heartbeat that was written promptly.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        clock: Clock,
        run_id: str,
        process: ProcessName,
        *,
        release: str = "",
        shard: str = "",
        learn_time: Callable[[datetime], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._layout = layout
        self._clock = clock
        self.run_id = run_id
        self._process = process
        self._release = release
        self._shard = shard
        self._learn_time = learn_time
        self._started_at = clock.now()
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._on_stop_request: Callable[[], None] = lambda: None

    def on_stop_request(self, stop: Callable[[], None]) -> None:
        """Register a function to call when this run is asked to end."""
        self._on_stop_request = stop

    def note_stopping(self) -> None:
        """Write at once that this run was asked to end. Safe to call from a signal handler."""
        if not self._is_stopping:
            self._is_stopping = True
            self._woken.set()

    def __enter__(self) -> Self:
        self._ended.clear()
        self._woken.clear()
        self._started_at = self._clock.now()
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
            self._store.delete([self._layout.run(self.run_id), self._layout.stop_request(self.run_id)])
        except CompactorError as exc:
            log_event("run.heartbeat_left", error=exc)

    def _go_on(self) -> None:
        while True:
            self._woken.wait(HEARTBEAT_INTERVAL_SECONDS)
            self._woken.clear()
            if self._ended.is_set():
                return
            self._write_heartbeat()

    def _write_heartbeat(self) -> None:
        begun_at = self._clock.now()
        beat = RunHeartbeat(
            run_id=self.run_id,
            host=self._process.host,
            process_id=self._process.process_id,
            release=self._release,
            started_at=self._started_at,
            heartbeat_at=begun_at,
            is_stopping=self._is_stopping,
            shard=self._shard,
        )
        try:
            self._store.put(self._layout.run(self.run_id), beat.to_json())
            written = self._store.stat(self._layout.run(self.run_id))
            is_prompt = (self._clock.now() - begun_at).total_seconds() < PROMPT_SECONDS
            if written is not None and is_prompt:
                self._learn_time(written.modified_at)
            if self._store.stat(self._layout.stop_request(self.run_id)) is not None:
                log_event("run.asked_to_stop")
                self._on_stop_request()
        # Whatever it is, the next heartbeat is tried: for good without one, a run that works counts as dead.
        except Exception as exc:  # noqa: BLE001
            log_event("run.heartbeat_failed", error=exc)

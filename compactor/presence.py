"""Signs of life: tells a run that died from another one that is still at work."""

import threading
from collections.abc import Iterable
from datetime import timedelta
from types import TracebackType
from typing import Self

from compactor.errors import CompactorError, ObjectNotFound
from compactor.layout import Layout
from compactor.logs import log_event
from compactor.ports import Clock, ObjectStore, Processes, ProcessName
from compactor.records import RunBeat

BEAT_SECONDS = 10.0
LIFE_SECONDS = 40.0
"""A run that gave no sign for so long is taken for dead: three beats may be late or lost."""


class Presence:
    """The sign of life of one run, given from a thread of its own as long as the context lasts.

    Args:
        store: Where the signs are.
        layout: Their places.
        clock: Dates them; runs on different machines are taken to agree on the time within seconds.
        run_id: This run.
        processes: Where a dead run of the same machine is known at once.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        clock: Clock,
        run_id: str,
        processes: Processes,
    ) -> None:
        self._store = store
        self._layout = layout
        self._clock = clock
        self._run_id = run_id
        self._processes = processes
        self._started_at = clock.now()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._ended.clear()
        self._started_at = self._clock.now()
        self._beat()
        self._thread = threading.Thread(target=self._go_on, name="presence", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self._store.delete([self._layout.run(self._run_id)])
        except CompactorError as exc:
            log_event("run.not_signed_off", level="warning", run_id=self._run_id, error=str(exc)[:500])

    def living(self, run_ids: Iterable[str]) -> frozenset[str]:
        """Those of these runs that gave a sign of life lately; this run is among them if it was asked for."""
        return frozenset(run_id for run_id in run_ids if run_id == self._run_id or self._is_living(run_id))

    def forget_dead(self) -> None:
        """Remove the signs of runs that are long gone."""
        limit = self._clock.now() - timedelta(seconds=100 * LIFE_SECONDS)
        listed = self._store.list(self._layout.runs_folder)
        self._store.delete([info.uri for info in listed if info.modified_at < limit])

    def _is_living(self, run_id: str) -> bool:
        try:
            beat = RunBeat.model_validate_json(self._store.read(self._layout.run(run_id)))
        except (ObjectNotFound, ValueError):
            return False
        if (self._clock.now() - beat.beat_at).total_seconds() > LIFE_SECONDS:
            return False
        return not self._processes.is_gone(ProcessName(beat.host, beat.process_id))

    def _go_on(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        process = self._processes.this()
        beat = RunBeat(
            run_id=self._run_id,
            host=process.host,
            process_id=process.process_id,
            started_at=self._started_at,
            beat_at=self._clock.now(),
        )
        try:
            self._store.put(self._layout.run(self._run_id), beat.model_dump_json().encode())
        except CompactorError as exc:  # without a sign this run is taken for dead, which costs nothing but an attempt
            log_event("run.sign_not_given", level="warning", run_id=self._run_id, error=str(exc)[:500])

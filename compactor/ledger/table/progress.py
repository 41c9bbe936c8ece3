"""How far the jobs are with the table: a small record of each, which the next one overwrites. Nothing depends on it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compactor.core.documents.table_records import BatchedManifest, TableProgress
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name
from compactor.ledger.state import State

NOTED_MANIFESTS = 500
"""The most manifests that a record names, so that it stays small. The others follow once these are in the table."""


@dataclass(slots=True)
class ProgressNotes:
    """Writes the record of one job. What cannot be written is left out: the next commit writes it anew.

    Attributes:
        state: Has the record.
        run_id: This run.
        shard: The number of its shard, from 1.
    """

    state: State
    run_id: str
    shard: int
    _last: TableProgress | None = field(default=None, init=False)

    def committed(self, batch: int, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note that commits work.

        Args:
            batch: The batch that was applied; 0 if there was none to apply.
            left: Placed manifests that wait, in the order in which they were placed.
            since: When the first of these was placed.
        """
        now = self.state.clock.now()
        applied = {"last_batch": batch, "committed_at": now} if batch else {}
        fine = {"failures": 0, "failing_since": None, "error": ""}
        self._write(left, waiting_since=since, as_of=now, **fine, **applied)

    def failed(self, error: str, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note that a commit failed, and why; else as `committed`."""
        now, last = self.state.clock.now(), self._known()
        faults = {"failures": last.failures + 1, "failing_since": last.failing_since or now, "error": error}
        self._write(left, waiting_since=since, as_of=now, **faults)

    def placed(self, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note what waits, for a run that may commit it; else as `committed`."""
        self._write(left, waiting_since=since, as_of=self.state.clock.now())

    def _write(self, left: Sequence[BatchedManifest], **changes: Any) -> None:
        named = {"waiting": len(left), "placed": tuple(left[:NOTED_MANIFESTS]), "run_id": self.run_id}
        self._last = self._known().model_copy(update={**changes, **named})
        with suppress(CompactorError):
            self.state.store.put(self.state.layout.table_progress(self.shard), self._last.to_json())

    def _known(self) -> TableProgress:
        """What was last written, by this run or an earlier one."""
        if self._last is None:
            with suppress(CompactorError):
                self._last = read_progress(self.state, self.shard)
        return self._last or TableProgress(run_id=self.run_id, as_of=self.state.clock.now())


def read_progress(state: State, shard: int) -> TableProgress | None:
    """How far the job of a shard is with the table; None if it has not said, or if that cannot be read."""
    uri = state.layout.table_progress(shard)
    with suppress(ObjectNotFound, RecordUnreadable):
        data = state.store.read(uri)
        return TableProgress.read(data, uri, "progress")
    return None


def note_working(state: State) -> None:
    """Note for all jobs that commits work, after one of an operator: a job that ended on a failure says so no more.

    A job that writes its record at the same moment wins or loses; its next commit says how it is.
    """
    for info in list(state.store.list(state.layout.table_progress_folder)):
        name = base_name(info.uri).removesuffix(".json")
        last = read_progress(state, int(name)) if name.isdecimal() else None
        if last is not None and last.failures:
            fine = last.model_copy(update={"failures": 0, "failing_since": None, "error": ""})
            with suppress(CompactorError):
                state.store.put(info.uri, fine.to_json())


def noted_placed(state: State, *, but_shard: int) -> list[BatchedManifest]:
    """The placed manifests that the jobs of other shards noted. They may be in the table meanwhile, or done."""
    names = [base_name(info.uri).removesuffix(".json") for info in state.store.list(state.layout.table_progress_folder)]
    shards = [int(name) for name in names if name.isdecimal() and int(name) != but_shard]
    notes = [read_progress(state, shard) for shard in shards]
    return [each for note in notes if note is not None for each in note.placed]

"""The jobs' progress with the table: one small record per job, overwritten each time. Nothing depends on it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compactor.core.documents.table_records import BatchedManifest, TableProgress
from compactor.core.errors import CompactorError
from compactor.core.layout import base_name
from compactor.ledger.state import State

NOTED_MANIFESTS = 500
"""The most manifests in a record, to keep it small. Others are noted once these are in the table."""


@dataclass(slots=True)
class ProgressNotes:
    """Writes one job's record, by its shard number, from 1. A failure is ignored: the next commit writes again."""

    state: State
    run_id: str
    shard: int
    _last: TableProgress | None = field(default=None, init=False)

    def committed(self, batch: int, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note a successful commit.

        Args:
            batch: The applied batch; 0 if there was none.
            left: Waiting manifests, in the order of publication.
            since: When the first of these was published.
        """
        now = self.state.clock.now()
        applied = {"last_batch": batch, "committed_at": now} if batch else {}
        fine = {"failures": 0, "failing_since": None, "error": ""}
        self._write(left, waiting_since=since, as_of=now, **fine, **applied)

    def failed(self, error: str, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note a failed commit and its cause; otherwise as `committed`."""
        now, last = self.state.clock.now(), self._known()
        faults = {"failures": last.failures + 1, "failing_since": last.failing_since or now, "error": error}
        self._write(left, waiting_since=since, as_of=now, **faults)

    def published(self, left: Sequence[BatchedManifest], since: datetime | None) -> None:
        """Note the waiting manifests, for another run that may commit them; otherwise as `committed`."""
        self._write(left, waiting_since=since, as_of=self.state.clock.now())

    def _write(self, left: Sequence[BatchedManifest], **changes: Any) -> None:
        named = {"waiting": len(left), "published": tuple(left[:NOTED_MANIFESTS]), "run_id": self.run_id}
        self._last = self._known().model_copy(update={**changes, **named})
        with suppress(CompactorError):
            self.state.store.put(self.state.layout.table_progress(self.shard), self._last.to_json())

    def _known(self) -> TableProgress:
        if self._last is None:
            with suppress(CompactorError):
                self._last = read_progress(self.state, self.shard)
        return self._last or TableProgress(run_id=self.run_id, as_of=self.state.clock.now())


def read_progress(state: State, shard: int) -> TableProgress | None:
    """The progress of a shard's job; None without a readable record."""
    return TableProgress.find_readable(state.store, state.layout.table_progress(shard))


def note_working(state: State) -> None:
    """Clear the failures of all jobs after an operator's commit succeeded.

    If a job writes its record at the same time, either may win; the job's next commit corrects it.
    """
    for shard in _shards(state):
        last = read_progress(state, shard)
        if last is not None and last.failures:
            fine = last.model_copy(update={"failures": 0, "failing_since": None, "error": ""})
            with suppress(CompactorError):
                state.store.put(state.layout.table_progress(shard), fine.to_json())


def noted_published(state: State, *, but_shard: int) -> list[BatchedManifest]:
    """The waiting manifests that other shards' jobs noted. They may meanwhile be in the table, or done."""
    notes = [read_progress(state, shard) for shard in _shards(state) if shard != but_shard]
    return [each for note in notes if note is not None for each in note.published]


def _shards(state: State) -> list[int]:
    names = [base_name(info.uri).removesuffix(".json") for info in state.store.list(state.layout.table_progress_folder)]
    return [int(name) for name in names if name.isdecimal()]

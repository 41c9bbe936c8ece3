"""How far the jobs are with the table: a small record of each, which the next one overwrites. Nothing depends on it."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compactor.core.documents.records import read_record
from compactor.core.documents.table_records import TableProgress
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.ledger.state import State


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

    def committed(self, batch: int, waiting: int, since: datetime | None) -> None:
        """Note that commits work.

        Args:
            batch: The batch that was applied; 0 if there was none to apply.
            waiting: Placed manifests that are left.
            since: When the first of these was placed.
        """
        now = self.state.clock.now()
        applied = {"last_batch": batch, "committed_at": now} if batch else {}
        fine = {"failures": 0, "failing_since": None, "error": ""}
        self._write(waiting=waiting, waiting_since=since, as_of=now, **fine, **applied)

    def failed(self, error: str, waiting: int, since: datetime | None) -> None:
        """Note that a commit failed, and why; else as `committed`."""
        now, last = self.state.clock.now(), self._known()
        faults = {"failures": last.failures + 1, "failing_since": last.failing_since or now, "error": error}
        self._write(waiting=waiting, waiting_since=since, as_of=now, **faults)

    def _write(self, **changes: Any) -> None:
        self._last = self._known().model_copy(update={**changes, "run_id": self.run_id})
        with suppress(CompactorError):
            self.state.store.put(self.state.layout.table_progress(self.shard), self._last.model_dump_json().encode())

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
        return read_record(TableProgress.model_validate_json, data, uri, kind="TableProgress", expected="progress")
    return None

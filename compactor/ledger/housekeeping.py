"""Which tasks that jobs repeat beside their work keep failing. No work waits for them, so it shows nowhere else."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from compactor.core.documents.records import LastCall, LastCleaning, LastClosing
from compactor.core.documents.table_records import LastUpkeep
from compactor.core.errors import ObjectNotFound
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

TOLD_FOR = timedelta(days=2)
"""A task that is asked for fails again within a day; what failed longer ago was switched off, or no job runs."""


@dataclass(frozen=True, slots=True)
class FailingTask:
    """A task that jobs repeat, and that has failed more than once since it last finished."""

    name: str  # retention, closing, table maintain or table merge
    failing_since: datetime  # when the first call failed since then
    failed_at: datetime  # when the last one did
    error: str  # why it did


def failing_tasks(state: State, upkeep: Iterable[str] = ()) -> tuple[FailingTask, ...]:
    """The tasks that fail now, by one small record of each. Trouble that is over by the next call is not told.

    Args:
        state: Has the records.
        upkeep: The tasks of the upkeep of the table that jobs do: maintain, merge.
    """
    layout, now = state.layout, state.clock.now()
    records: dict[str, tuple[str, type[LastCall]]] = {
        "retention": (layout.last_cleaning, LastCleaning),
        "closing": (layout.last_closing, LastClosing),
    }
    records |= {f"table {task}": (layout.last_upkeep(task), LastUpkeep) for task in upkeep}

    def failing(name: str) -> FailingTask | None:
        last = last_call(state, *records[name])
        if last is None or last.failing_since is None or last.failed_at is None or last.failing_since == last.failed_at:
            return None
        if abs(now - last.failed_at) > TOLD_FOR:
            return None
        return FailingTask(name, last.failing_since, last.failed_at, last.error)

    return tuple(found for found in map_ordered(failing, records) if found is not None)


def last_call(state: State, uri: str, kind: type[LastCall]) -> LastCall | None:
    """What came of a task; None without a record, and with a damaged one, which the next call writes anew."""
    try:
        return kind.model_validate_json(state.store.read(uri))
    except (ObjectNotFound, ValueError):
        return None

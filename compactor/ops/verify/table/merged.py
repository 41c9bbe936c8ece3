"""Verifies the merged files of a table: by their footers, and if asked by each row."""

from collections.abc import Iterator

from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectNotFound, StagingError
from compactor.engines.parquet_files import parquet_facts
from compactor.ledger.state import State
from compactor.ledger.table.releases import Releases
from compactor.ops.verify.report import Discrepancy
from compactor.table.merging.same_rows import first_difference
from compactor.table.unmerged import LiveFile

_TO_UNDO = "`compactor table merge --undo` brings back its parts"
_TO_REBUILD = "`compactor rebuild` makes the rows of its manifests again"


def merged_faults(state: State, table: str, live: LiveFile, *, deep: bool) -> list[Discrepancy]:
    """What is wrong with a file of a table if it is a merged one.

    Args:
        state: Has the files, and tells which parts may be gone.
        table: The name of the table.
        live: The file.
        deep: Whether its rows are compared with those of the files that were merged.
    """
    return list(_faults(state, table, live, live.merged, deep=deep)) if live.merged is not None else []


def _faults(state: State, table: str, live: LiveFile, merged: MergedFile, *, deep: bool) -> Iterator[Discrepancy]:
    expected = f"{merged.rows} rows, {merged.size_bytes} bytes"
    if live.differs:
        found = f"in table {table}: {live.file.records} rows, {live.file.size_bytes} bytes"
        yield Discrepancy("", merged.uri, expected, found)
    is_released = Releases(state).has(merged.date, merged.uri)
    try:
        facts = parquet_facts(state.store, merged.uri)
        if (facts.rows, facts.size_bytes) != (merged.rows, merged.size_bytes):
            yield Discrepancy("", merged.uri, expected, f"{facts.rows} rows, {facts.size_bytes} bytes")
        elif deep and (difference := first_difference(state.store, merged, may_lack_parts=is_released)):
            yield Discrepancy("", merged.uri, "the rows of the files that were merged", difference)
    except (StagingError, ObjectNotFound) as exc:
        yield Discrepancy("", merged.uri, f"a whole merged file; {_TO_REBUILD if is_released else _TO_UNDO}", str(exc))

"""Checks that the rows of a commit are in their partitions."""

from collections.abc import Iterator

import pyarrow as pa

from compactor.core.documents.records import Commit, StagedFile
from compactor.core.errors import StagingError
from compactor.core.partitions import PartitionField, parse_fields
from compactor.engines.partitioned.counting import BATCH_ROWS
from compactor.engines.partitioned.row_partitions import RowPartitions, without_values
from compactor.ops.verify.report import Discrepancy
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion
from compactor.table.merging.committed_rows import CommittedRows, OpenedRows


def misplaced(rows: CommittedRows, registry: SchemaRegistry, commit: Commit) -> Iterator[Discrepancy]:
    """Files with rows of another partition. Reads the columns that tell it.

    Rows of too many partitions are in one without values, which the record says of it.
    """
    fields = parse_fields(commit.partition_by)
    for file in (each for each in commit.outputs if fields and not each.holds_others):
        try:
            opened = rows.open(commit.date, file)
            wrong = _misplaced_rows(opened, file, fields, registry.version(file.version_in(commit)))
        except StagingError as exc:
            yield Discrepancy(commit.manifest_id, file.final, "a readable Parquet file", str(exc))
            continue
        if wrong:
            yield Discrepancy(
                commit.manifest_id, file.final, f"{file.rows} rows of its partition", f"{wrong} of others"
            )


def _misplaced_rows(
    opened: OpenedRows, file: StagedFile, fields: tuple[PartitionField, ...], schema: SchemaVersion
) -> int:
    partitions, expected = RowPartitions(fields, schema), tuple(file.partition)
    if not partitions.columns:
        return 0 if expected == without_values(fields) else len(opened.numbers)
    wrong = 0
    try:
        for batch in opened.batches(BATCH_ROWS, partitions.columns):
            codes = partitions.of(batch)
            counted = zip(*(codes.rows.value_counts().field(at).to_pylist() for at in (0, 1)), strict=True)
            wrong += sum(rows for at, rows in counted if codes.values[at] != expected)
    except (pa.ArrowInvalid, OSError) as exc:
        raise StagingError(f"{file.final}: {exc}; expected a whole Parquet file") from exc
    return wrong

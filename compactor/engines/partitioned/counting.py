"""Counts the rows of staged files by partition, and chooses the partitions that get their own files.

Memory is bounded for any number of partitions: when there are too many, those with the fewest rows so far are dropped.
So the overall most frequent partitions are kept, wherever a producer puts rows with unique values.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compactor.core.errors import StagingError
from compactor.core.partitions import PartitionField, PartitionValues, fits
from compactor.core.ports import ObjectStore
from compactor.engines.engine import StagedOutput
from compactor.engines.parquet_files import DAMAGED, open_parquet
from compactor.engines.partitioned.row_partitions import RowPartitions, without_values


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """The settings of partitions.

    Attributes:
        fields: The levels, outermost first.
        max_partitions: The most partitions per manifest that get their own files.
        target_file_bytes: The size of a file at which the next one in its partition starts.
    """

    fields: tuple[PartitionField, ...]
    max_partitions: int
    target_file_bytes: int
    compression: str


BATCH_ROWS = 8_192
"""Rows to read at once. Long repeated values take little space in a file, but full space in memory."""

_COUNTED = 4  # times as many as may be kept


@dataclass(frozen=True, slots=True)
class Division:
    """How a manifest's rows are partitioned.

    Attributes:
        kept: The partitions that get their own files, in file order, with their numbers of rows.
        is_exact: Whether these numbers are exact rather than lower bounds.
        unparsed: Rows with a value that is not a time where one was expected.
        single: For each staged file, the partition of all its rows; None if it has several.
    """

    kept: dict[PartitionValues, int]
    is_exact: bool
    unparsed: int
    single: tuple[PartitionValues | None, ...]


def divided(store: ObjectStore, outputs: Sequence[StagedOutput], rules: PartitionRules) -> Division:
    """Count the partitions of staged files.

    Raises:
        StagingError: A file cannot be read.
    """
    counts, most = Counter[PartitionValues](), _COUNTED * rules.max_partitions
    single: list[PartitionValues | None] = []
    unparsed = 0
    is_exact = True
    for output in outputs:
        own: set[PartitionValues] = set()
        for found, not_parsed in _batches(store, output, rules.fields):
            unparsed += not_parsed
            counts.update(found)
            if len(own) <= 1:
                own.update(found)
            if len(counts) > most:
                counts, is_exact = Counter(dict(counts.most_common(most // 2))), False
        single.append(own.pop() if len(own) == 1 else None)
    return Division(_kept(counts, rules), is_exact, unparsed, tuple(single))


def _kept(counts: Counter[PartitionValues], rules: PartitionRules) -> dict[PartitionValues, int]:
    """The partitions with the most rows, ordered by value; always includes the one for rows without values."""
    short = Counter({values: rows for values, rows in counts.items() if fits(rules.fields, values)})
    none = without_values(rules.fields)
    own = [values for values, _ in short.most_common(rules.max_partitions)]
    if none in short and none not in own:
        own[-1] = none
    return {values: short[values] for values in sorted(own, key=_order)}


def _order(values: PartitionValues) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in values]


def _batches(
    store: ObjectStore, output: StagedOutput, fields: tuple[PartitionField, ...]
) -> Iterator[tuple[dict[PartitionValues, int], int]]:
    """Yield each batch's partitions with their numbers of rows, and the number of rows without a time."""
    file, _ = open_parquet(store, output.uri)
    partitions = RowPartitions(fields, output.schema)
    if not partitions.columns:  # no row has a value
        rows = file.metadata.num_rows
        yield {without_values(fields): rows} if rows else {}, 0
        return
    try:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=partitions.columns):
            codes = partitions.of(batch)
            yield codes.counts, codes.unparsed
    except DAMAGED as exc:
        raise StagingError(f"{output.uri}: {exc}; expected a complete Parquet file") from exc

"""Verifies the staged files against the engine's report before publishing, and counts misfits."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

import pyarrow.parquet as pq

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import PartitionValues
from compactor.core.ports import ObjectStore
from compactor.engines.engine import Staged
from compactor.engines.parquet_files import DAMAGED, ParquetFacts, open_parquet, parquet_facts
from compactor.schema.schema import RESCUED_COLUMN, parquet_columns, parquet_types

_BATCH_ROWS = 65_536


def misfits_by_column(store: ObjectStore, staged: Staged) -> dict[str, int]:
    """Count the values of each typed column in the rescued data. Reads only their keys, and nothing if all fit.

    Raises:
        StagingError: A staged file cannot be read, or its number of such values differs from the engine's count.
    """
    if not staged.rescued_values:
        return {}
    found = Counter[str]()
    for output in staged.outputs:
        names = {column.key: column.name for column in output.schema.columns if column.is_typed}
        keys = _rescued_keys(store, output.uri)
        found.update({names[key]: number for key, number in keys.items() if key in names})
    if found.total() != staged.rescued_values:
        where = staged.outputs[0].uri if staged.outputs else "no output"
        raise StagingError(
            f"{where}: {found.total()} values of typed columns in the rescued data, expected {staged.rescued_values}"
        )
    return dict(found)


def _rescued_keys(store: ObjectStore, uri: str) -> Counter[str]:
    file, _ = open_parquet(store, uri)
    leaf = _leaf_of_keys(file)
    keys = Counter[str]()
    if leaf is None:
        return keys
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[leaf]):
            column = batch.column(RESCUED_COLUMN)
            for counted in column.flatten().flatten()[0].value_counts():
                keys[counted["values"].as_py()] += counted["counts"].as_py()
    except DAMAGED as exc:
        raise StagingError(f"{uri}: {exc}; expected a complete Parquet file") from exc
    return keys


def _leaf_of_keys(file: pq.ParquetFile) -> str | None:
    """The path of the map's keys. Engines name a map's parts differently."""
    for number in range(len(file.schema)):
        leaf = file.schema.column(number)
        if leaf.max_repetition_level and leaf.path.partition(".")[0] == RESCUED_COLUMN:
            return str(leaf.path)
    return None


def verify_staged(
    store: ObjectStore, manifest: Manifest, staged: Staged, metadata_columns: Sequence[str]
) -> tuple[list[ParquetFacts], list[ParquetFacts]]:
    """Prove from the written footers that every line of the manifest is accounted for.

    Returns:
        Outputs and rejects, in the order of `staged`.

    Raises:
        StagingError: A count or a column is wrong, or a file is incomplete.
    """
    where = f"manifest {manifest.manifest_id}"
    # guard: nothing is decided or published before it is verified
    _check_reports(where, manifest, staged.reports)
    read = map_ordered if staged.partition_by else map  # with partitions, there may be many
    outputs = list(read(partial(parquet_facts, store), [output.uri for output in staged.outputs]))
    rejects = [parquet_facts(store, uri) for uri in staged.rejects]
    for output, file in zip(staged.outputs, outputs, strict=True):
        if not staged.schema.continues(output.schema):
            raise StagingError(f"{where}: {file.uri} has columns that are not the first ones in the schema")
        columns, types = (planned(output.schema, metadata_columns) for planned in (parquet_columns, parquet_types))
        _check_columns(where, file, columns, types)
    _check_rows(where, "rows", outputs, sum(report.records for report in staged.reports))
    _check_partitions(where, staged, outputs)
    _check_rows(where, "rejects", rejects, sum(report.reject_rows for report in staged.reports))
    return outputs, rejects


def _check_reports(where: str, manifest: Manifest, reports: Sequence[FileReport]) -> None:
    named, reported = [file.uri for file in manifest.files], [report.uri for report in reports]
    if named != reported:  # guard: every file of the manifest is reported on
        raise StagingError(f"{where}: {len(reported)} files reported; expected the manifest's {len(named)} in order")
    for report in reports:
        accounted = report.records + report.rejected_lines + report.blank_lines
        if accounted != report.lines:  # guard: rows, rejects and blank lines of each file are its lines
            raise StagingError(f"{where}: {report.uri} has {report.lines} lines, but {accounted} are accounted for")
        if report.status != FileStatus.COMPACTED and report.lines:
            raise StagingError(f"{where}: {report.uri} is {report.status}, but has lines")


def _check_columns(where: str, facts: ParquetFacts, columns: Sequence[str], types: Sequence[str]) -> None:
    if facts.columns != columns:  # guard: the columns in the footers are those of the schema
        raise StagingError(f"{where}: {facts.uri} has columns {list(facts.columns)}, expected {list(columns)}")
    for name, found, expected in zip(columns, facts.types, types, strict=True):
        if found != expected:  # guard: the types in the footers are those of the schema
            raise StagingError(f"{where}: {facts.uri} has column {name!r} of type {found}, expected {expected}")


def _check_rows(where: str, what: str, files: Sequence[ParquetFacts], expected: int) -> None:
    found = sum(file.rows for file in files)
    if found != expected:  # guard: the rows in the footers are the records that were inspected
        raise StagingError(f"{where}: the staged Parquet holds {found} {what}, expected {expected}")


def _check_partitions(where: str, staged: Staged, files: Sequence[ParquetFacts]) -> None:
    found = Counter[PartitionValues]()
    for output, file in zip(staged.outputs, files, strict=True):
        if not output.holds_others:
            found[output.partition] += file.rows
    for values, rows in staged.partition_rows.items():
        # guard: each partition has the rows counted before the split
        if found[values] < rows or (staged.are_partition_rows_exact and found[values] > rows):
            raise StagingError(f"{where}: a partition holds {found[values]} rows, expected {rows}")
    if staged.partition_by and found.keys() - staged.partition_rows.keys():
        raise StagingError(f"{where}: a partition was staged for which no row was counted")

"""The Spark engine: inspects in Python on the executors, converts in the JVM, and resolves disagreements."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from compactor.adapters.spark.conversion import ConvertTask, convert, corrupt_lines
from compactor.adapters.spark.executor_tasks import (
    Inspection,
    KeyPlan,
    inspect_on_executors,
    run_tasks,
    runs_queries,
    runs_tasks,
)
from compactor.adapters.spark.failures import translated
from compactor.adapters.stores import StoreSpec
from compactor.core.documents.records import FileReport
from compactor.core.errors import LinkRefused, StagingError
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.engine import EngineRules, Staged, StagedOutput, StageRequest
from compactor.engines.parquet_files import parquet_facts
from compactor.engines.spark.footers import WholeFooterTask, copy_with_whole_footer
from compactor.engines.spark.python_rows import CELLS_PER_BYTE
from compactor.engines.task_results import TaskFile
from compactor.ledger.sizing import partitioning, planned_files
from compactor.ndjson.inspection import Discovery
from compactor.schema.schema import EMPTY_KEY, NO_NEW_KEYS, SchemaVersion

STORE_THREADS = 16
ROUNDS = 5
"""How often an attempt inspects and converts: again to parse all lines, to gather keys without a column, to reject
lines that Spark cannot parse, or because files change.
"""

MAX_OVERFLOW_KEYS = 1_000
"""The most keys without a column to pass to Spark individually. With more, rows are made in Python."""

SAMPLE_BYTES = 32 * 1024 * 1024
"""Decoded bytes to sample from the first manifest, before any commit has measured a ratio."""

_LARGEST_RATIO = 1.0
"""The assumed upper bound of Parquet bytes per decoded byte, if not measured: JSON repeats every key."""

_CONF = {
    # Query engines disagree about INT96, Spark's default.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Write all dates in the ISO 8601 calendar, as in the text.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Tables identify columns by these ids.
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Nothing is filtered, and Spark would reset the filters of all columns before each row.
    "spark.sql.json.filterPushdown.enabled": "false",
}
"""Overrides of the Spark session's defaults."""


@dataclass(frozen=True, slots=True)
class _Conversion:
    """The conversion of one round."""

    request: StageRequest
    inspection: Inspection
    schema: SchemaVersion
    overflow_keys: tuple[str, ...]  # keys without a column that files have under their own name
    refused_keys: int  # minimum number of keys that got no column


@dataclass(frozen=True, slots=True)
class _Converted:
    """Spark's output: the staged files, their rows, and the values that do not fit their column's type."""

    outputs: tuple[str, ...] = ()
    rows: int = 0
    rescued_values: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEngine:
    """Stages manifests with Spark.

    Attributes:
        store_spec: How executors open the same store.
        discovery: Whether inspection parses every line, or assumes that all keys have a column.
    """

    session: SparkSession
    store: ObjectStore
    store_spec: StoreSpec
    rules: EngineRules
    discovery: Discovery
    name = "spark"

    def __post_init__(self) -> None:
        for name, value in _CONF.items():
            self.session.conf.set(name, value)

    def is_healthy(self) -> bool:
        return runs_tasks(self.session) and runs_queries(self.session)

    def stage(self, request: StageRequest) -> Staged:
        """Inspect and convert; repeat with a closer inspection if the two disagree about lines.

        Raises:
            StagingError: The parsers still disagree, or files keep changing.
            TryAgainError: A transient failure.
            OperatorError: An operator must act.
        """
        with translated(request.manifest.manifest_id):
            return self._stage(request)

    def _stage(self, request: StageRequest) -> Staged:
        discovery = self.discovery
        refused: dict[int, frozenset[bytes]] = {}
        keys = KeyPlan(request.schema.keys, request.key_limits)
        schema, overflow, refused_keys = request.schema, tuple[str, ...](), 0
        for round_number in range(1, ROUNDS + 1):
            staging = f"{request.staging}{round_number}/"
            inspection = inspect_on_executors(
                self.session,
                self.store_spec,
                request.manifest,
                staging,
                self.rules,
                keys=keys,
                discovery=discovery,
                refused=refused,
            )
            request.on_inspected()
            if keys.rows is None:
                schema = _schema_for(request, inspection)
                overflow = _overflow(request, inspection, schema)
                refused_keys = inspection.refused_keys(schema)
                is_sparse = inspection.records * len(schema.columns) > CELLS_PER_BYTE * inspection.decoded_bytes
                in_python = is_sparse or any(column.is_nested for column in schema.columns)
                if in_python and discovery == "declared":
                    discovery = "full"  # Python makes rows from parsed lines
                    continue
                if in_python or inspection.further_from or len(overflow) > MAX_OVERFLOW_KEYS:
                    keys = self._with_rows(request, inspection, schema)
                    continue
            elif inspection.further_from and not schema.has_rescued:
                keys = KeyPlan(request.schema.keys, request.key_limits)  # files were replaced, and have more keys
                continue
            conversion = _Conversion(request, inspection, schema, overflow, refused_keys)
            converted = self._convert(conversion, staging)
            if changed := self._changed(inspection):
                # Spark reopens the files by name, so let it read copies of the inspected versions.
                refused = {**refused, **{index: refused.get(index, frozenset()) for index in changed}}
                continue
            # The footers show what was written, so a lost or surplus file is detected here, too.
            if converted is not None and converted.rows == inspection.records:
                return self._staged(conversion, staging, converted)
            if discovery == "declared":
                discovery = "full"  # the assumption was wrong: parse every line
            elif inspection.sources:
                refused = self._disagreements(conversion, refused)
        raise StagingError(
            f"manifest {request.manifest.manifest_id}: Spark made {converted.rows if converted else 'no'} rows "
            f"of {inspection.records} inspected records, or files changed in each of {ROUNDS} rounds"
        )

    def _staged(self, conversion: _Conversion, staging: str, converted: _Converted) -> Staged:
        schema, written = conversion.schema, [*converted.outputs]
        if written and schema.has_rescued:
            tasks = [WholeFooterTask(uri, f"{staging}footers/") for uri in written]
            description = f"complete footers {conversion.request.manifest.manifest_id}"
            written = run_tasks(self.session, self.store_spec, tasks, copy_with_whole_footer, description=description)
        return conversion.inspection.staged(
            schema,
            [StagedOutput(uri, schema) for uri in written],
            rescued_values=converted.rescued_values,
            refused_keys=conversion.refused_keys,
        )

    def _with_rows(self, request: StageRequest, inspection: Inspection, schema: SchemaVersion) -> KeyPlan:
        """Let inspection make rows for a schema's columns; the schema is final from here on."""
        ratio = request.ratio or _LARGEST_RATIO
        files = planned_files(inspection.decoded_bytes, ratio, self.rules.target_file_bytes)
        rows = request.row_plan(schema, self.rules)
        return KeyPlan(schema.keys, NO_NEW_KEYS, rows, tasks=files)

    def _convert(self, conversion: _Conversion, staging: str) -> _Converted | None:
        """Inspection's rows, else Spark's; None if Spark could not parse some line."""
        inspection = conversion.inspection
        written = tuple(uri for task in inspection.tasks for uri in task.outputs)
        rescued_values = inspection.rescued_values
        if inspection.sources:
            files = self._planned_files(conversion, staging)
            found = self._convert_to(f"{staging}out/", files, inspection.sources, conversion)
            if found is None:
                return None
            written, rescued_values = tuple(info.uri for info in self._parquet_in(f"{staging}out/")), found
        with ThreadPoolExecutor(STORE_THREADS) as pool:
            facts = pool.map(lambda uri: parquet_facts(self.store, uri), written)
            return _Converted(written, sum(each.rows for each in facts), rescued_values)

    def _convert_to(self, target: str, files: int, sources: Mapping[str, str], conversion: _Conversion) -> int | None:
        request = conversion.request
        task = ConvertTask(
            plan=request.row_plan(conversion.schema, self.rules),
            sources=sources,
            column_keys=_column_keys(conversion),
            overflow_keys=conversion.overflow_keys,
            target=target,
            files=files,
            partitioning=partitioning(files, request.manifests_in_flight, self.session.sparkContext.defaultParallelism),
        )
        return convert(self.session, task)

    def _planned_files(self, conversion: _Conversion, staging: str) -> int:
        """The number of files to write. A sample is measured only if there may be more than one."""
        planned = partial(
            planned_files, conversion.inspection.decoded_bytes, target_file_bytes=self.rules.target_file_bytes
        )
        if conversion.request.ratio:
            return planned(ratio=conversion.request.ratio)
        return 1 if planned(ratio=_LARGEST_RATIO) == 1 else planned(ratio=self._sampled_ratio(conversion, staging))

    def _sampled_ratio(self, conversion: _Conversion, staging: str) -> float:
        """Parquet bytes per decoded byte, measured on a few files that are written like the whole manifest."""
        decoded_bytes = 0
        sources: dict[str, str] = {}
        for file in conversion.inspection.files:
            if file.readable_uri is not None and decoded_bytes < SAMPLE_BYTES:
                uri, size_bytes = self._sampled(file, file.readable_uri, f"{staging}sample-of-{file.index}.ndjson")
                sources[uri] = file.report.origin_uri
                decoded_bytes += size_bytes
        target = f"{staging}sample/"
        self._convert_to(target, 1, sources, conversion)
        return max(sum(info.size_bytes for info in self._parquet_in(target)), 1) / max(decoded_bytes, 1)

    def _sampled(self, file: TaskFile, uri: str, head_uri: str) -> tuple[str, int]:
        """A URI to sample and its decoded bytes: the file itself, or a copy of a long file's first lines."""
        is_plain = file.report.codec == "none" or uri != file.report.uri
        if not is_plain or file.report.decoded_bytes <= 2 * SAMPLE_BYTES:
            return uri, file.report.decoded_bytes
        head = self.store.read_range(uri, 0, SAMPLE_BYTES)
        head = head[: head.rfind(b"\n") + 1]
        if not head:
            return uri, file.report.decoded_bytes
        self.store.put(head_uri, head)
        return head_uri, len(head)

    def _parquet_in(self, folder: str) -> list[ObjectInfo]:
        return [info for info in self.store.list(folder) if info.uri.endswith(".parquet")]

    def _changed(self, inspection: Inspection) -> list[int]:
        """The indices of files that changed after inspection, so that Spark may have read a different version."""
        originals = [file for file in inspection.files if file.readable_uri == file.report.uri]
        with ThreadPoolExecutor(STORE_THREADS) as pool:
            same = pool.map(self._is_same, [file.report for file in originals])
            return [file.index for file, is_same in zip(originals, same, strict=True) if not is_same]

    def _is_same(self, report: FileReport) -> bool:
        try:
            info = self.store.stat(report.uri)
        except LinkRefused:
            return False
        return info is not None and info.etag == report.etag

    def _disagreements(
        self, conversion: _Conversion, refused: Mapping[int, frozenset[bytes]]
    ) -> dict[int, frozenset[bytes]]:
        """The lines to reject because orjson parses them and Spark cannot, by file index; includes `refused`."""
        inspection = conversion.inspection
        keys = (*sorted(conversion.schema.keys), *conversion.overflow_keys)
        found = corrupt_lines(self.session, conversion.request.manifest.manifest_id, inspection.sources, keys)
        index_of = {file.readable_uri: file.index for file in inspection.files}
        more = {index_of[source]: lines for source, lines in found.items()}
        return {**refused, **{index: refused.get(index, frozenset()) | lines for index, lines in more.items()}}


def _schema_for(request: StageRequest, inspection: Inspection) -> SchemaVersion:
    schema = request.columns_for(inspection.new_keys, rescued_from=inspection.further_from)
    if inspection.records and not schema.columns:
        schema = request.columns_for({EMPTY_KEY: next(iter(inspection.sources.values()))})
    return schema


def _column_keys(conversion: _Conversion) -> tuple[str, ...]:
    """The keys of columns for Spark to read.

    Columns added later by other manifests, perhaps hundreds, then cost this one little. Keys are omitted by whole
    versions because Spark compiles code for each set of them.
    """
    return conversion.schema.keys_up_to({*conversion.inspection.present_keys, *conversion.inspection.new_keys})


def _overflow(request: StageRequest, inspection: Inspection, schema: SchemaVersion) -> tuple[str, ...]:
    """The files' possible keys without a column in the schema."""
    keys = dict.fromkeys([*sorted(request.schema.keys), *inspection.new_keys])
    return tuple(key for key in keys if key not in schema.keys)

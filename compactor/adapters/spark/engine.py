"""The Spark engine: inspect in Python on the executors, convert in the JVM, and settle what the two disagree on."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

from compactor.adapters.spark.conversion import Converted, ConvertTask, convert, corrupt_lines
from compactor.adapters.spark.failures import translated
from compactor.adapters.spark.health import runs_queries, runs_tasks
from compactor.adapters.spark.inspection_tasks import InspectRules, inspect_on_executors
from compactor.adapters.stores import StoreSpec
from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.core.records import FileReport
from compactor.engines.engine import Staged, StagedOutput, StageRequest
from compactor.engines.input_files import InspectedFile
from compactor.ledger.sizing import partitioning, planned_files
from compactor.ndjson.inspection import Discovery, check_keys
from compactor.schema.schema import EMPTY_KEY, SchemaVersion, first_sources, merge_keys

STAT_THREADS = 16
ROUNDS = 4
"""How often an attempt may look closer: at all lines, at lines that Spark refuses, at files that change."""

SAMPLE_BYTES = 32 * 1024 * 1024
"""Input that a first ratio is measured on, before any commit has taught one."""

_WRITE_CONF = {
    # INT96, Spark's own default, is read differently by different engines.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Dates are those of the calendar of ISO 8601 in all years, as the text says them.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""How the session writes, whatever the defaults of the Spark that was joined."""


@dataclass(frozen=True, slots=True)
class ConvertRules:
    """The settings that conversion depends on.

    Attributes:
        discovery: Whether inspection parses every line, or trusts that there are only keys that have a column.
    """

    discovery: Discovery
    metadata_columns: tuple[str, ...]
    target_file_bytes: int
    compression: str


@dataclass(frozen=True, slots=True)
class _Inspection:
    """All files of a manifest, inspected.

    Attributes:
        keys: In first-seen order, with the first file that has each.
    """

    files: tuple[InspectedFile, ...]
    rejects: tuple[str, ...]
    keys: Mapping[str, str]

    @property
    def sources(self) -> dict[str, str]:
        """What Spark is to read, with the original that each stands for."""
        return {file.readable_uri: file.report.uri for file in self.files if file.readable_uri is not None}

    @property
    def records(self) -> int:
        return sum(file.report.records for file in self.files)

    @property
    def decoded_bytes(self) -> int:
        return sum(file.report.decoded_bytes for file in self.files if file.readable_uri is not None)


class SparkEngine:
    """Stages manifests with Spark.

    Args:
        session: The Spark session.
        store: The driver's store.
        store_spec: How executors open the same store.
        inspect_rules: Limits of inspection.
        convert_rules: How to convert.
    """

    name = "spark"

    def __init__(
        self,
        session: SparkSession,
        *,
        store: ObjectStore,
        store_spec: StoreSpec,
        inspect_rules: InspectRules,
        convert_rules: ConvertRules,
    ) -> None:
        self._session = session
        self._store = store
        self._store_spec = store_spec
        self._inspect_rules = inspect_rules
        self._rules = convert_rules
        for name, value in _WRITE_CONF.items():
            session.conf.set(name, value)

    def is_healthy(self) -> bool:
        return runs_tasks(self._session) and runs_queries(self._session)

    def stage(self, request: StageRequest) -> Staged:
        """Inspect and convert; where the two see different lines, look closer and do it again.

        Raises:
            ManifestError: The manifest holds more keys than any table can have columns.
            StagingError: Two parsers still disagree, or files change again and again.
            TryAgainError: Passing trouble.
            OperatorError: A person must act.
        """
        with translated(request.manifest.manifest_id):
            return self._stage(request)

    def _stage(self, request: StageRequest) -> Staged:
        discovery: Discovery = self._rules.discovery
        refused: dict[int, frozenset[bytes]] = {}
        for round_number in range(1, ROUNDS + 1):
            staging = f"{request.staging}{round_number}/"
            inspection = self._inspect(request, staging, discovery, refused)
            request.on_inspected()
            schema = request.columns_for(inspection.keys)
            if inspection.records and not schema.columns:
                schema = request.columns_for({EMPTY_KEY: next(iter(inspection.sources.values()))})
            converted: Converted | None = Converted(rows=0)
            if inspection.sources:
                converted = self._convert(request, staging, inspection, schema)
            if changed := self._changed(inspection):
                # Spark opens the files anew, so it is to read copies of the versions that inspection reads.
                refused = {**refused, **{index: refused.get(index, frozenset()) for index in changed}}
                continue
            if converted is not None and converted.rows == inspection.records:
                return Staged(
                    reports=tuple(file.report for file in inspection.files),
                    schema=schema,
                    outputs=tuple(StagedOutput(uri, schema) for uri in self._parquet_in(f"{staging}out/")),
                    rejects=inspection.rejects,
                    rescued_values=converted.rescued_values,
                )
            if discovery == "declared":
                discovery = "full"  # the trust was misplaced: now every line is looked at
            else:
                refused = self._disagreements(request, inspection, schema, refused)
        raise StagingError(
            f"manifest {request.manifest.manifest_id}: Spark made {converted.rows if converted else 'no'} rows "
            f"of {inspection.records} inspected records, or files changed each of {ROUNDS} times"
        )

    def _inspect(
        self,
        request: StageRequest,
        staging: str,
        discovery: Discovery,
        refused: Mapping[int, frozenset[bytes]],
    ) -> _Inspection:
        results = inspect_on_executors(
            self._session,
            self._store_spec,
            request.manifest,
            staging,
            self._inspect_rules,
            discovery=discovery,
            refused=refused,
        )
        files = tuple(sorted((file for result in results for file in result.files), key=lambda file: file.index))
        keys = first_sources((file.report.uri, file.keys) for file in files)
        check_keys(request.manifest.manifest_id, keys)
        rejects = tuple(result.rejects_uri for result in results if result.rejects_uri is not None)
        return _Inspection(files=files, rejects=rejects, keys=keys)

    def _convert(
        self, request: StageRequest, staging: str, inspection: _Inspection, schema: SchemaVersion
    ) -> Converted | None:
        ratio = request.ratio or self._sampled_ratio(request, staging, inspection, schema)
        files = planned_files(inspection.decoded_bytes, ratio, self._rules.target_file_bytes)
        return convert(
            self._session, self._task(request, f"{staging}out/", inspection.sources, inspection, schema, files)
        )

    def _task(
        self,
        request: StageRequest,
        target: str,
        sources: Mapping[str, str],
        inspection: _Inspection,
        schema: SchemaVersion,
        files: int,
    ) -> ConvertTask:
        known = schema.keys
        return ConvertTask(
            manifest_id=request.manifest.manifest_id,
            sources=sources,
            schema=schema,
            overflow_keys=tuple(key for key in inspection.keys if key not in known),
            metadata_columns=self._rules.metadata_columns,
            processed_at=request.processed_at,
            target=target,
            files=files,
            partitioning=partitioning(
                files, request.manifests_in_flight, self._session.sparkContext.defaultParallelism
            ),
            compression=self._rules.compression,
        )

    def _sampled_ratio(
        self, request: StageRequest, staging: str, inspection: _Inspection, schema: SchemaVersion
    ) -> float:
        """Parquet bytes per decoded byte of a few files, written just as the whole will be."""
        decoded_bytes = 0
        sources: dict[str, str] = {}
        for file in inspection.files:
            if file.readable_uri is not None and decoded_bytes < SAMPLE_BYTES:
                uri, size_bytes = self._sampled(file, file.readable_uri, f"{staging}sample-of-{file.index}.ndjson")
                sources[uri] = file.report.uri
                decoded_bytes += size_bytes
        target = f"{staging}sample/"
        convert(self._session, self._task(request, target, sources, inspection, schema, files=1))
        sampled = [info for info in self._store.list(target) if info.uri.endswith(".parquet")]
        return max(sum(info.size_bytes for info in sampled), 1) / max(decoded_bytes, 1)

    def _sampled(self, file: InspectedFile, uri: str, head_uri: str) -> tuple[str, int]:
        """A file to sample and its decoded bytes: the file itself, or whole lines from the head of a long one."""
        is_plain = file.report.codec == "none" or uri != file.report.uri
        if not is_plain or file.report.decoded_bytes <= 2 * SAMPLE_BYTES:
            return uri, file.report.decoded_bytes
        head = self._store.read_range(uri, 0, SAMPLE_BYTES)
        head = head[: head.rfind(b"\n") + 1]
        if not head:
            return uri, file.report.decoded_bytes
        self._store.put(head_uri, head)
        return head_uri, len(head)

    def _parquet_in(self, folder: str) -> tuple[str, ...]:
        return tuple(info.uri for info in self._store.list(folder) if info.uri.endswith(".parquet"))

    def _changed(self, inspection: _Inspection) -> list[int]:
        """The files that Spark may have read in another version than inspection did, by their index."""
        originals = [file for file in inspection.files if file.readable_uri == file.report.uri]
        with ThreadPoolExecutor(STAT_THREADS) as pool:
            same = pool.map(self._is_same, [file.report for file in originals])
            return [file.index for file, is_same in zip(originals, same, strict=True) if not is_same]

    def _is_same(self, report: FileReport) -> bool:
        info = self._store.stat(report.uri)
        return info is not None and info.etag == report.etag

    def _disagreements(
        self,
        request: StageRequest,
        inspection: _Inspection,
        schema: SchemaVersion,
        refused: Mapping[int, frozenset[bytes]],
    ) -> dict[int, frozenset[bytes]]:
        """Lines that orjson takes and Spark does not: they are to be rejected, with the reason that says so."""
        keys = merge_keys([sorted(schema.keys), tuple(inspection.keys)])
        found = corrupt_lines(self._session, request.manifest.manifest_id, inspection.sources, keys)
        index_of = {file.readable_uri: file.index for file in inspection.files}
        merged = dict(refused)
        for source, lines in found.items():
            index = index_of[source]
            merged[index] = merged.get(index, frozenset()) | lines
        return merged

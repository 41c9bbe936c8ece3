"""The native engine: plans a manifest's files into bins, one output file each, and has them read and written once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

from compactor.core.errors import AccessError, StagingError
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.map_ordered import map_ordered
from compactor.core.packing import spread
from compactor.core.ports import ObjectStore
from compactor.engines.bin_task import BinFile, BinResult, BinTask
from compactor.engines.engine import Staged, StagedOutput, StageRequest
from compactor.engines.kernel import RowPlan
from compactor.ledger.sizing import planned_files
from compactor.ndjson.file_walk import OnChangedFile
from compactor.ndjson.inspection import check_keys
from compactor.ndjson.lines import Limits
from compactor.schema.schema import EMPTY_KEY, SchemaVersion, first_sources

ROUNDS = 4
"""How often a bin may be read: again for keys that are new, and for files that change meanwhile and bring others."""

SAMPLE_BYTES = 32 * 1024 * 1024
"""Stored input that a first manifest is sampled from, before any commit has taught a ratio."""

HELD_BYTES = 16 * 1024 * 1024
"""Records of which rows are held back, at most: those of several files of the usual size."""

HELD_PARTS = 8
"""An output file is handed on in so many parts at least, so that it can end where it is as large as it should be."""

UNKNOWN_RATIO = 0.25
"""Parquet bytes per stored byte where not even a sample is to be had; about that of events."""


@dataclass(frozen=True, slots=True)
class _Input:
    """A file of the manifest.

    Attributes:
        index: In the manifest.
        stored_bytes: Its length, as the manifest or the store says; nothing for one that is not there.
    """

    index: int
    file: ManifestFile
    stored_bytes: int


class BinWorkers(Protocol):
    """Does the tasks of the engine, wherever that is."""

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        """Do tasks, several at once, and give their results in their order.

        Raises:
            CompactorError: What a task raised.
        """

    def are_well(self) -> bool:
        """Whether they can do anything at all. Never raises."""


@dataclass(frozen=True, slots=True)
class NativeRules:
    """The settings that the engine depends on."""

    limits: Limits
    on_changed_file: OnChangedFile
    metadata_columns: tuple[str, ...]
    target_file_bytes: int
    compression: str


@dataclass(frozen=True, slots=True)
class _Bin:
    """A bin that was written.

    Attributes:
        schema: The version whose columns it was written with.
    """

    inputs: Sequence[_Input]
    schema: SchemaVersion
    result: BinResult

    @property
    def is_lacking(self) -> bool:
        """Whether rows are missing for want of a column. Parquet has no rows without columns."""
        return self.result.lacks_columns or (self.result.records > 0 and not self.schema.columns)


class NativeEngine:
    """Stages manifests in one pass over their bytes.

    Args:
        workers: What does the tasks.
        rules: How to do them.
        store: Tells how long files are whose manifest does not say it.
    """

    name = "native"

    def __init__(self, workers: BinWorkers, rules: NativeRules, store: ObjectStore) -> None:
        self._workers = workers
        self._rules = rules
        self._store = store

    def is_healthy(self) -> bool:
        return self._workers.are_well()

    def stage(self, request: StageRequest) -> Staged:
        """Write the rows of all files, those of new keys a second time. How many manifests are in flight is no matter.

        Raises:
            ManifestError: The manifest holds more keys than any table can have columns.
            StagingError: Files change again and again.
            TryAgainError: Passing trouble.
            OperatorError: A person must act.
        """
        bins = self._written(request)
        request.on_inspected()
        rounds = redone = 0
        while lacking := [number for number, each in enumerate(bins) if each.is_lacking]:
            rounds += 1
            if rounds == ROUNDS:
                where = f"manifest {request.manifest.manifest_id}"
                raise StagingError(f"{where}: files brought new keys each of {ROUNDS} times they were read")
            schema = request.columns_for(_missing_keys(bins))
            again = [bins[number].inputs for number in lacking]
            for number, each in zip(lacking, self._write(request, schema, again, rounds), strict=True):
                bins[number] = each
            redone += len(lacking)
        newest = max((each.schema for each in bins), key=lambda schema: schema.version)
        if not request.declared_keys <= newest.keys:
            newest = request.columns_for({})
        return _staged(bins, newest, redone)

    def _written(self, request: StageRequest) -> list[_Bin]:
        """All bins, written with the columns that are known by now."""
        schema = request.schema
        inputs = self._inputs(request.manifest)
        stored_bytes = sum(each.stored_bytes for each in inputs)
        ratio = request.stored_ratio
        # Less makes one file whatever the ratio is, and to write it again for its keys costs no more than a sample.
        is_large = stored_bytes > min(SAMPLE_BYTES, self._rules.target_file_bytes)
        if is_large and (ratio is None or not schema.columns):
            schema, sampled = self._sample(request, schema, inputs)
            ratio = ratio or sampled
        count = planned_files(stored_bytes, ratio or UNKNOWN_RATIO, self._rules.target_file_bytes)
        return self._write(request, schema, spread(inputs, count, lambda each: each.stored_bytes), 0)

    def _inputs(self, manifest: Manifest) -> list[_Input]:
        unknown = (file for file in manifest.files if file.size_bytes is None)
        asked = map_ordered(self._stored_bytes, unknown)
        return [
            _Input(index, file, next(asked) if file.size_bytes is None else file.size_bytes)
            for index, file in enumerate(manifest.files)
        ]

    def _stored_bytes(self, file: ManifestFile) -> int:
        try:
            found = self._store.stat(file.uri)
        except AccessError:  # what the file gets in the audit is for its task to find out
            return 0
        return found.size_bytes if found is not None else 0

    def _sample(
        self, request: StageRequest, schema: SchemaVersion, inputs: Sequence[_Input]
    ) -> tuple[SchemaVersion, float | None]:
        """Learn the first keys, and what rows of them take, from the first files of a manifest.

        They are whole files from its beginning, so that columns are numbered as if all of it had been looked at.

        Returns:
            The version with their keys; and Parquet bytes per stored byte, None where that cannot be told.
        """
        ends = list(accumulate(each.stored_bytes for each in inputs))
        count = min(sum(end < SAMPLE_BYTES for end in ends) + 1, len(ends))
        if ends[count - 1] > 2 * SAMPLE_BYTES:
            return schema, None
        for number in (1, 2):
            [sample] = self._write(request, schema, [inputs[:count]], number, folder="sample")
            if not sample.is_lacking:
                return schema, max(sample.result.output_bytes, 1) / ends[count - 1]
            keys = _new_keys([sample])
            if not keys:  # records without keys: the rest of the manifest may have some
                break
            schema = request.columns_for(keys)
        return schema, None

    def _write(
        self,
        request: StageRequest,
        schema: SchemaVersion,
        bins: Sequence[Sequence[_Input]],
        round_number: int,
        *,
        folder: str = "",
    ) -> list[_Bin]:
        plan = RowPlan(
            schema=schema,
            metadata_columns=self._rules.metadata_columns,
            manifest_id=request.manifest.manifest_id,
            processed_at=request.processed_at,
            rescues_unknown=schema.has_rescued
            and len(schema.keys) >= request.max_columns
            and request.declared_keys <= schema.keys,
            compression=self._rules.compression,
            held_bytes=min(HELD_BYTES, self._rules.target_file_bytes // HELD_PARTS),
        )
        task = BinTask(
            files=(),
            stored_bytes=0,
            staging=f"{request.staging}{folder}{round_number}/",
            number=0,
            plan=plan,
            limits=self._rules.limits,
            on_changed_file=self._rules.on_changed_file,
            target_file_bytes=self._rules.target_file_bytes,
        )
        tasks = [
            replace(
                task,
                files=tuple((each.index, each.file) for each in inputs),
                stored_bytes=sum(each.stored_bytes for each in inputs),
                number=number,
            )
            for number, inputs in enumerate(bins)
        ]
        results = self._workers.write_bins(request.manifest.manifest_id, tasks)
        written = [_Bin(inputs, schema, result) for inputs, result in zip(bins, results, strict=True)]
        check_keys(request.manifest.manifest_id, _all_keys(written))
        return written


def _in_order(bins: Sequence[_Bin]) -> list[BinFile]:
    return sorted((file for each in bins for file in each.result.files), key=lambda file: file.index)


def _new_keys(bins: Sequence[_Bin]) -> dict[str, str]:
    """The keys without a column, as first seen, with the first file that has each."""
    return first_sources((file.report.uri, file.new_keys) for file in _in_order(bins))


def _missing_keys(bins: Sequence[_Bin]) -> dict[str, str]:
    """The same, or where there are none the key of records without keys."""
    records = (file.report.uri for file in _in_order(bins) if file.report.records)
    return _new_keys(bins) or {EMPTY_KEY: next(records)}


def _all_keys(bins: Sequence[_Bin]) -> list[str]:
    """All keys of some bins: first those with a column, then the others as first seen."""
    seen = dict.fromkeys(key for each in bins for key in each.result.seen_keys)
    return [*seen, *(key for file in _in_order(bins) for key in file.new_keys if key not in seen)]


def _staged(bins: Sequence[_Bin], schema: SchemaVersion, redone: int) -> Staged:
    outputs = [StagedOutput(uri, each.schema) for each in bins for uri in each.result.outputs]
    return Staged(
        reports=tuple(file.report for file in _in_order(bins)),
        schema=schema,
        outputs=tuple(outputs),
        rejects=tuple(each.result.rejects_uri for each in bins if each.result.rejects_uri is not None),
        rescued_values=sum(each.result.rescued_values for each in bins),
        redone_bins=redone,
    )

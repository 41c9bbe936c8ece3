"""The native engine: packs a manifest's files into bins of an output file each, which tasks read and write once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate
from typing import Protocol, TypeVar

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import AccessError, StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.core.rules.packing import spread
from compactor.engines.engine import ColumnsFor, EngineRules, Staged, StagedOutput, StageRequest
from compactor.engines.native.bin_task import BinFile, BinResult, BinTask
from compactor.engines.native.kernel import RowPlan
from compactor.engines.rows_place import RowsPlace
from compactor.ledger.sizing import leeway, planned_files
from compactor.schema.schema import EMPTY_KEY, SchemaVersion, first_sources

# Divides the files of a manifest into bins whose output files have the right size. Decisions, no I/O.
#
# A file is never divided between bins, but a bin may make several output files, which end at any row.


T = TypeVar("T")

LEEWAY = 1.01
"""A bin of which no better is expected than files at the very edge of the right sizes is joined with another one."""


def bins_of(items: Sequence[T], weight: Callable[[T], int], *, ratio: float, target_file_bytes: int) -> list[list[T]]:
    """Divide files into one bin for each output file; into fewer bins where large files would make unlike ones.

    Args:
        items: The files; each bin keeps their order.
        weight: Returns the stored length of a file.
        ratio: Parquet bytes per stored byte.
        target_file_bytes: How large an output file should be.

    Returns:
        Bins with at least one file each.
    """
    numbers = range(len(items))
    total = sum(weight(item) for item in items)
    planned = planned_files(total, ratio, target_file_bytes)

    def is_right(load: int) -> bool:
        return leeway(load * ratio, target_file_bytes) >= LEEWAY

    def load(numbers: Sequence[int]) -> int:
        return sum(weight(items[number]) for number in numbers)

    bins = [(load(share), share) for share in spread(numbers, planned, lambda number: weight(items[number]))]
    joined = _joined(bins, is_right)
    if _wrong(joined, is_right) < _wrong(bins, is_right):
        bins = joined
    return [[items[number] for number in sorted(share)] for _, share in bins]


_Bin = tuple[int, list[int]]  # the load, and the numbers of the items


def _wrong(bins: Sequence[_Bin], is_right: Callable[[int], bool]) -> int:
    """The load of bins that cannot make files of the right size."""
    return sum(load for load, _ in bins if not is_right(load))


def _joined(bins: Sequence[_Bin], is_right: Callable[[int], bool]) -> list[_Bin]:
    """Join bins that would make too small or too large files with others: as few as need be, for each is a task."""
    joined = list(bins)
    while len(joined) > 1:
        wrong = min(joined, key=lambda each: (is_right(each[0]), each[0]))
        if is_right(wrong[0]):
            break
        joined.remove(wrong)
        other = min(joined, key=lambda each: (not is_right(wrong[0] + each[0]), each[0]))
        joined.remove(other)
        joined.append((wrong[0] + other[0], wrong[1] + other[1]))
    return joined


@dataclass(frozen=True, slots=True)
class BinInput:
    """A file of the manifest.

    Attributes:
        index: Its position in the manifest.
        stored_bytes: Its length according to the manifest or the store; 0 if it does not exist.
    """

    index: int
    file: ManifestFile
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to write with.

    Attributes:
        rescues_unknown: Some keys got no column, so that the values of all that have none are rescued.
    """

    schema: SchemaVersion
    rescues_unknown: bool


@dataclass(frozen=True, slots=True)
class WrittenBin:
    """A bin that has been written with the columns of `schema`."""

    inputs: Sequence[BinInput]
    schema: SchemaVersion
    result: BinResult

    @property
    def is_lacking(self) -> bool:
        """Whether rows are missing because a column is missing. Parquet has no rows without columns."""
        return self.result.lacks_columns or (self.result.records > 0 and not self.schema.columns)


def _files(bins: Sequence[WrittenBin]) -> list[BinFile]:
    return sorted((file for each in bins for file in each.result.files), key=lambda file: file.index)


def new_keys(bins: Sequence[WrittenBin]) -> dict[str, str]:
    """The keys without a column in first-seen order, with the first file that has each."""
    return first_sources((file.report.origin_uri, file.new_keys) for file in _files(bins))


def further_from(bins: Sequence[WrittenBin]) -> str:
    """The first file with keys that were not collected; empty if there is none."""
    return next((file.report.origin_uri for file in _files(bins) if file.has_further_keys), "")


def columns_of(bins: Sequence[WrittenBin], columns_for: ColumnsFor) -> Columns:
    """The columns for the keys of bins that lack some; one for the empty key if their records have no keys at all."""
    keys, further = new_keys(bins), further_from(bins)
    if not keys and not further:
        keys = {EMPTY_KEY: next(file.report.origin_uri for file in _files(bins) if file.report.records)}
    schema = columns_for(keys, rescued_from=further)
    refused = keys.keys() - schema.keys - schema.retired_keys
    return Columns(schema, rescues_unknown=bool(refused))


def staged(bins: Sequence[WrittenBin], schema: SchemaVersion, redone: int) -> Staged:
    """All that the bins staged.

    Args:
        bins: In the order in which their outputs will be numbered.
        schema: The version with a column for every key.
        redone: Number of bins that were written again.
    """
    outputs = [StagedOutput(uri, each.schema) for each in bins for uri in each.result.outputs]
    return Staged(
        reports=tuple(file.report for file in _files(bins)),
        schema=schema,
        outputs=tuple(outputs),
        rejects=tuple(each.result.rejects_uri for each in bins if each.result.rejects_uri is not None),
        rescued_values=sum(each.result.rescued_values for each in bins),
        redone_bins=redone,
        refused_keys=schema.refused(new_keys(bins), has_further=bool(further_from(bins))),
    )


ROUNDS = 4
"""How often a bin may be written: again for new keys, and again if changed files bring yet other keys."""

SAMPLE_BYTES = 16 * 1024 * 1024
"""Stored bytes to sample from the first manifest, before any commit has measured a ratio. The first 18 MB of 900 MB of
events told it to 3 %, as did the first 29 MB."""

HELD_BYTES = 16 * 1024 * 1024
"""The most bytes of records to hold back: several files of the usual size."""

PAGES_BYTES = 32 * 1024 * 1024
"""The most bytes of the pages of all columns, which each task has in memory."""

PAGES_PARTS = 4
"""The pages of all columns are at most one part in so many of an output file, before they are compressed."""

HELD_PARTS = 8
"""The fewest parts in which an output file is written, so that it can end close to its target size."""

UNKNOWN_RATIO = 0.25
"""Parquet bytes per stored byte if not even a sample can be measured; typical of event logs."""


class BinWorkers(Protocol):
    """Runs the tasks of the engine."""

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        """Run tasks, several at once, and return their results in order.

        Raises:
            CompactorError: The error of a task.
        """

    def are_healthy(self) -> bool:
        """Whether the workers can run tasks. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeEngine:
    """Stages manifests in one pass over their bytes.

    Attributes:
        store: Asked for the length of files whose manifest does not state it.
    """

    workers: BinWorkers
    rules: EngineRules
    store: ObjectStore
    name = "native"

    def is_healthy(self) -> bool:
        return self.workers.are_healthy()

    def stage(self, request: StageRequest) -> Staged:
        """Write the rows of all files; write bins with new keys a second time. Ignores `manifests_in_flight`.

        Raises:
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
                raise StagingError(f"{where}: files had new keys each of the {ROUNDS} times they were read")
            columns = columns_of(bins, request.columns_for)
            again = [bins[number].inputs for number in lacking]
            for number, each in zip(lacking, self._write(request, columns, again, rounds), strict=True):
                bins[number] = each
            redone += len(lacking)
        newest = max((each.schema for each in bins), key=lambda schema: schema.version)
        if not request.declared_keys <= newest.keys:
            newest = request.columns_for({})
        return staged(bins, newest, redone)

    def _written(self, request: StageRequest) -> list[WrittenBin]:
        """Write all bins with the columns known so far."""
        columns = Columns(request.schema, rescues_unknown=not request.key_limits.max_new_columns)
        inputs = self._inputs(request.manifest)
        stored_bytes = sum(each.stored_bytes for each in inputs)
        ratio = request.stored_ratio
        # Smaller input makes one file whatever the ratio, and rewriting it for new keys costs no more than a sample. A
        # single file has one task whatever the ratio, and a sample of it would be all of it.
        is_large = len(inputs) > 1 and stored_bytes > min(2 * SAMPLE_BYTES, self.rules.target_file_bytes)
        if is_large and (ratio is None or not columns.schema.columns):
            columns, sampled = self._sample(request, columns, inputs)
            ratio = ratio or sampled
        bins = bins_of(
            inputs,
            lambda each: each.stored_bytes,
            ratio=ratio or UNKNOWN_RATIO,
            target_file_bytes=self.rules.target_file_bytes,
        )
        return self._write(request, columns, bins, 0)

    def _inputs(self, manifest: Manifest) -> list[BinInput]:
        unknown = (file for file in manifest.files if file.size_bytes is None)
        asked = map_ordered(self._stored_bytes, unknown)
        return [
            BinInput(index, file, next(asked) if file.size_bytes is None else file.size_bytes)
            for index, file in enumerate(manifest.files)
        ]

    def _stored_bytes(self, file: ManifestFile) -> int:
        try:
            found = self.store.stat(file.uri)
        except AccessError:  # the file's task will report it
            return 0
        return found.size_bytes if found is not None else 0

    def _sample(
        self, request: StageRequest, columns: Columns, inputs: Sequence[BinInput]
    ) -> tuple[Columns, float | None]:
        """Find the first keys, and measure the size of their rows, in the first files of a manifest.

        The sample is whole files from the beginning, so that columns have the same order as without sampling.

        Returns:
            The columns with the keys of the sample; and Parquet bytes per stored byte, None if it was not measured.
        """
        ends = list(accumulate(each.stored_bytes for each in inputs))
        count = min(sum(end < SAMPLE_BYTES for end in ends) + 1, len(ends))
        if ends[count - 1] > 4 * SAMPLE_BYTES:
            return columns, None
        for number in (1, 2):
            written = self._write(request, columns, [inputs[:count]], number, folder="sample")
            if not written[0].is_lacking:
                return columns, max(written[0].result.output_bytes, 1) / ends[count - 1]
            if not new_keys(written) and not further_from(written):
                break  # its records have no keys, but those of the rest of the manifest may
            columns = columns_of(written, request.columns_for)
        return columns, None

    def _write(
        self,
        request: StageRequest,
        columns: Columns,
        bins: Sequence[Sequence[BinInput]],
        round_number: int,
        *,
        folder: str = "",
    ) -> list[WrittenBin]:
        """Write bins; into a folder of the staging if one is given, for what does not count."""
        plan = RowPlan(
            schema=columns.schema,
            metadata_columns=self.rules.metadata_columns,
            manifest_id=request.manifest.manifest_id,
            processed_at=request.processed_at,
            date=date.fromisoformat(request.manifest.date),
            rescues_unknown=columns.rescues_unknown
            and columns.schema.has_rescued
            and request.declared_keys <= columns.schema.keys,
            key_limits=request.key_limits,
            compression=self.rules.compression,
            held_bytes=min(HELD_BYTES, self.rules.target_file_bytes // HELD_PARTS),
            pages_bytes=min(PAGES_BYTES, self.rules.target_file_bytes // PAGES_PARTS),
        )
        task = BinTask(
            files=(),
            stored_bytes=0,
            staging=f"{request.staging}{folder}{round_number}/",
            number=0,
            plan=plan,
            limits=self.rules.limits,
            formats=self.rules.formats,
            on_changed_file=self.rules.on_changed_file,
            target_file_bytes=self.rules.target_file_bytes,
            place=RowsPlace.final(request.place, self.rules.compression) if request.place and not folder else None,
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
        results = self.workers.write_bins(request.manifest.manifest_id, tasks)
        return [WrittenBin(inputs, columns.schema, result) for inputs, result in zip(bins, results, strict=True)]

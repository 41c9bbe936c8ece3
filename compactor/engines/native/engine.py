"""The native engine: packs a manifest's files into bins, one per output file, which tasks read and write once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol, TypeVar

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import AccessError, StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.core.rules.packing import spread
from compactor.engines.engine import EngineRules, RowPlan, Staged, StagedOutput, StageRequest
from compactor.engines.native.bin_task import BinResult, BinTask
from compactor.engines.rows_place import RowsPlace
from compactor.engines.task_results import ManifestResults
from compactor.ledger.sizing import leeway, planned_files
from compactor.schema.schema import EMPTY_KEY, SchemaVersion

# Divides a manifest's files into bins whose output files are right-sized. Decisions, no I/O.
#
# A file is never divided between bins, but a bin may make several output files, which may end at any row.


T = TypeVar("T")

LEEWAY = 1.01
"""A bin is joined with another one if its files are expected only at the very edge of the tolerance."""


def bins_of(items: Sequence[T], weight: Callable[[T], int], *, ratio: float, target_file_bytes: int) -> list[list[T]]:
    """Divide files into one bin per output file; into fewer bins where large files would make them uneven.

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
    """The load of bins that cannot make right-sized files."""
    return sum(load for load, _ in bins if not is_right(load))


def _joined(bins: Sequence[_Bin], is_right: Callable[[int], bool]) -> list[_Bin]:
    """Join bins that would make too small or too large files with others. Joins few, because each bin is a task."""
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
class WrittenBin:
    """A bin that has been written."""

    task: BinTask
    result: BinResult

    @property
    def is_lacking(self) -> bool:
        """Whether rows are missing for lack of a column. Parquet has no rows without columns."""
        return self.result.lacks_columns or (self.result.records > 0 and not self.task.plan.schema.columns)


def _results(bins: Sequence[WrittenBin]) -> ManifestResults[BinResult]:
    return ManifestResults([each.result for each in bins])


ROUNDS = 4
"""How often a bin may be written: again for new keys, and again if changed files add even more keys."""

SAMPLE_BYTES = 16 * 1024 * 1024
"""Stored bytes to sample from the first manifest, before any commit has measured a ratio. The first 18 MB of 900 MB of
events predicted it to within 3 %, as did the first 29 MB."""

HELD_BYTES = 16 * 1024 * 1024
"""The most bytes of records to hold back: several files of the usual size."""

PAGES_BYTES = 32 * 1024 * 1024
"""The most bytes in the pages of all columns, which each task holds in memory."""

PAGES_PARTS = 4
"""The uncompressed pages of all columns are at most an output file divided by this."""

HELD_PARTS = 8
"""The fewest parts in which an output file is written, so that it can end close to its target size."""

UNKNOWN_RATIO = 0.25
"""Parquet bytes per stored byte if not even a sample can be measured; typical of event logs."""


class BinWorkers(Protocol):
    """Runs the engine's tasks."""

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        """Run tasks, several at once, and return their results in order.

        Raises:
            CompactorError: A task's error.
        """

    def are_healthy(self) -> bool:
        """Whether the workers can run tasks. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeEngine:
    """Stages manifests in a single pass over their bytes.

    Attributes:
        store: Supplies the length of files whose manifest does not state it.
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
            StagingError: Files keep changing.
            TryAgainError: A transient failure.
            OperatorError: An operator must act.
        """
        bins = self._written(request)
        request.on_inspected()
        rounds = redone = 0
        while lacking := [number for number, each in enumerate(bins) if each.is_lacking]:
            rounds += 1
            if rounds == ROUNDS:
                where = f"manifest {request.manifest.manifest_id}"
                raise StagingError(f"{where}: files had new keys each of the {ROUNDS} times they were read")
            plan = self._wider_plan(request, bins)
            again = [replace(bins[number].task, plan=plan) for number in lacking]
            for number, each in zip(lacking, self._write(request, again, f"{rounds}/"), strict=True):
                bins[number] = each
            redone += len(lacking)
        newest = max((each.task.plan.schema for each in bins), key=lambda schema: schema.version)
        if not request.declared_keys <= newest.keys:
            newest = request.columns_for({})
        results = _results(bins)
        return results.staged(
            newest,
            [StagedOutput(uri, each.task.plan.schema) for each in bins for uri in each.result.outputs],
            rescued_values=results.rescued_values,
            redone_bins=redone,
            refused_keys=results.refused_keys(newest),
        )

    def _written(self, request: StageRequest) -> list[WrittenBin]:
        """Write all bins with the columns known so far."""
        plan = self._plan(request, request.schema, rescues_unknown=not request.key_limits.max_new_columns)
        lengths = self._stored_bytes(request.manifest)
        ratio = request.stored_ratio
        # Smaller input makes one file whatever the ratio, and rewriting it for new keys costs no more than a sample. A
        # single file has one task whatever the ratio, and its sample would be the whole file.
        is_large = len(lengths) > 1 and sum(lengths) > min(2 * SAMPLE_BYTES, self.rules.target_file_bytes)
        if is_large and (ratio is None or not plan.schema.columns):
            plan, sampled = self._sample(request, plan, lengths)
            ratio = ratio or sampled
        bins = bins_of(
            range(len(lengths)),
            lengths.__getitem__,
            ratio=ratio or UNKNOWN_RATIO,
            target_file_bytes=self.rules.target_file_bytes,
        )
        return self._write(request, [self._task(request, plan, numbers, lengths) for numbers in bins], "0/")

    def _stored_bytes(self, manifest: Manifest) -> list[int]:
        """Each file's length from the manifest or the store; 0 if it does not exist."""
        asked = map_ordered(self._asked_bytes, (file for file in manifest.files if file.size_bytes is None))
        return [next(asked) if file.size_bytes is None else file.size_bytes for file in manifest.files]

    def _asked_bytes(self, file: ManifestFile) -> int:
        try:
            found = self.store.stat(file.uri)
        except AccessError:  # the file's task will report it
            return 0
        return found.size_bytes if found is not None else 0

    def _sample(self, request: StageRequest, plan: RowPlan, lengths: Sequence[int]) -> tuple[RowPlan, float | None]:
        """Find the first keys, and measure the size of their rows, in the first files of a manifest.

        The sample consists of whole files from the beginning, so that columns have the same order as without sampling.

        Returns:
            The plan with columns for the sampled keys; and Parquet bytes per stored byte, None if not measured.
        """
        ends = list(accumulate(lengths))
        count = min(sum(end < SAMPLE_BYTES for end in ends) + 1, len(ends))
        if ends[count - 1] > 4 * SAMPLE_BYTES:
            return plan, None
        for number in (1, 2):
            task = replace(self._task(request, plan, range(count), lengths), place=None)
            written = self._write(request, [task], f"sample{number}/")
            if not written[0].is_lacking:
                return plan, max(written[0].result.output_bytes, 1) / ends[count - 1]
            results = _results(written)
            if not (results.new_keys or results.further_from):
                break  # its records have no keys, but those in the rest of the manifest may
            plan = self._wider_plan(request, written)
        return plan, None

    def _wider_plan(self, request: StageRequest, bins: Sequence[WrittenBin]) -> RowPlan:
        """A plan with the columns that bins lack; includes one for the empty key if their records have no keys."""
        results = _results(bins)
        keys = results.new_keys
        if not keys and not results.further_from:
            keys = {EMPTY_KEY: next(file.report.origin_uri for file in results.files if file.report.records)}
        schema = request.columns_for(keys, rescued_from=results.further_from)
        return self._plan(request, schema, rescues_unknown=bool(keys.keys() - schema.keys - schema.retired_keys))

    def _plan(self, request: StageRequest, schema: SchemaVersion, *, rescues_unknown: bool) -> RowPlan:
        """A plan. If some keys got no column, the values of all keys without a column are rescued."""
        return request.row_plan(
            schema,
            self.rules,
            rescues_unknown=rescues_unknown and schema.has_rescued and request.declared_keys <= schema.keys,
            key_limits=request.key_limits,
            held_bytes=min(HELD_BYTES, self.rules.target_file_bytes // HELD_PARTS),
            pages_bytes=min(PAGES_BYTES, self.rules.target_file_bytes // PAGES_PARTS),
        )

    def _task(self, request: StageRequest, plan: RowPlan, numbers: Sequence[int], lengths: Sequence[int]) -> BinTask:
        files = request.manifest.files
        return BinTask(
            files=tuple((number, files[number]) for number in numbers),
            stored_bytes=sum(lengths[number] for number in numbers),
            staging="",
            number=0,
            plan=plan,
            rules=self.rules,
            place=RowsPlace.final(request.place, self.rules.compression) if request.place else None,
        )

    def _write(self, request: StageRequest, tasks: Sequence[BinTask], folder: str) -> list[WrittenBin]:
        """Write bins, with a staging folder for files that do not go to their task's place."""
        numbered = [
            replace(task, staging=f"{request.staging}{folder}", number=number) for number, task in enumerate(tasks)
        ]
        results = self.workers.write_bins(request.manifest.manifest_id, numbered)
        return [WrittenBin(task, result) for task, result in zip(numbered, results, strict=True)]

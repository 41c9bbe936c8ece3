"""The native engine: packs a manifest's files into bins of an output file each, which tasks read and write once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate
from typing import Protocol

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import AccessError, StagingError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.engines.engine import EngineRules, Staged, StageRequest
from compactor.engines.native.bin_task import BinResult, BinTask
from compactor.engines.native.bins import bins_of
from compactor.engines.native.kernel import RowPlan
from compactor.engines.native.written_bins import (
    BinInput,
    Columns,
    WrittenBin,
    columns_of,
    further_from,
    new_keys,
    staged,
)
from compactor.engines.rows_place import RowsPlace

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
            kafka=self.rules.kafka,
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

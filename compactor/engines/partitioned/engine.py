"""An engine whose staged files each have rows of a single partition."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import folders
from compactor.core.ports import ObjectStore
from compactor.engines.engine import Engine, Staged, StagedOutput, StageRequest
from compactor.engines.partitioned.counting import Division, PartitionRules, divided
from compactor.engines.partitioned.splitting import PartitionSplitter
from compactor.engines.rows_place import RowsPlace
from compactor.ndjson.files.scratch import scratch_errors

_AT_ONCE = 2  # files copied at the same time, with some parts of each in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedEngine:
    """Lets another engine stage the rows, and partitions them in this process.

    A staged file with rows of one partition stays as it is. A file's partition is known only after all of its rows, so
    the engine always stages its files; only the partitioned files are written in place.
    """

    engine: Engine
    store: ObjectStore
    rules: PartitionRules

    @property
    def name(self) -> str:
        return self.engine.name

    def is_healthy(self) -> bool:
        return self.engine.is_healthy()

    def stage(self, request: StageRequest) -> Staged:
        """Make one attempt; see `Engine.stage`. The caller verifies each partition's rows from the footers.

        Raises:
            StagingError: Rows were lost or duplicated.
        """
        staged = self.engine.stage(replace(request, place=""))
        place = RowsPlace(f"{request.staging}partitions/out/")
        if request.place:
            place = RowsPlace.final(request.place, self.rules.compression)
        with scratch_errors():
            division = divided(self.store, staged.outputs, self.rules)
            outputs = self._outputs(staged.outputs, division, place)
        return replace(
            staged,
            outputs=outputs,
            partition_by=self.rules.fields,
            unparsed_times=division.unparsed,
            partition_rows=division.kept,
            are_partition_rows_exact=division.is_exact,
        )

    def _outputs(
        self, outputs: Sequence[StagedOutput], division: Division, place: RowsPlace
    ) -> tuple[StagedOutput, ...]:
        whole = [
            replace(output, partition=values)
            for output, values in zip(outputs, division.single, strict=True)
            if values is not None and values in division.kept
        ]
        uris = {output.uri for output in whole}
        mixed = [output for output in outputs if output.uri not in uris]
        splitter = PartitionSplitter(self.store, self.rules, tuple(division.kept), place)
        if place.in_place:
            whole = list(map_ordered(partial(self._taken, place), enumerate(whole), threads=_AT_ONCE))
        return (*whole, *(splitter.split(mixed) if mixed else ()))

    def _taken(self, place: RowsPlace, numbered: tuple[int, StagedOutput]) -> StagedOutput:
        """Copy a staged file unchanged to its place."""
        number, output = numbered
        uri = place.uri(f"whole-{number:06d}", folders(self.rules.fields, output.partition))
        place.take(self.store, output.uri, uri)
        return replace(output, uri=uri)

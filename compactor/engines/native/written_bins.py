"""The written bins of an attempt: their keys, and the files that they staged."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.documents.manifest import ManifestFile
from compactor.engines.engine import ColumnsFor, Staged, StagedOutput
from compactor.engines.native.bin_task import BinFile, BinResult
from compactor.schema.schema import EMPTY_KEY, SchemaVersion, first_sources


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

"""Which files of the table a verification is about."""

from collections.abc import Collection
from dataclasses import dataclass

from compactor.core.layout import Layout
from compactor.core.manifest_key import ManifestKey
from compactor.table.catalog import TableFile


@dataclass(frozen=True, slots=True)
class TableScope:
    """Files of the table: all, or those of some dates or manifests.

    Attributes:
        dates: The dates; None for all.
        keys: The manifests; None for all.
        summed_dates: Of these dates, only the sums over the files count.
        fresh: Manifests of these dates whose files count one by one.
    """

    dates: Collection[str] | None = None
    keys: Collection[ManifestKey] | None = None
    summed_dates: Collection[str] = ()
    fresh: Collection[ManifestKey] = ()

    def has(self, layout: Layout, file: TableFile) -> bool:
        """Whether a file counts, by its name or by the date that the table gives it."""
        owner = layout.output_owner(file.uri)
        if self.keys is not None:
            return owner in self.keys
        return self.dates is None or file.date in self.dates or (owner is not None and owner.date in self.dates)

    def is_summed(self, layout: Layout, file: TableFile) -> bool:
        """Whether a file only counts in the sums. One that no manifest is named in never does."""
        owner = layout.output_owner(file.uri)
        return bool(owner and owner.id and owner.date in self.summed_dates and owner not in self.fresh)


EVERYTHING = TableScope()

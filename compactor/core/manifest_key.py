"""The key of a manifest in the ledger: its date and its id."""

from typing import NamedTuple


class ManifestKey(NamedTuple):
    """One manifest. Keys sort by date first.

    Attributes:
        date: Of its data, as `yyyy-mm-dd`.
        id: Unique among all manifests, whatever their dates.
    """

    date: str
    id: str

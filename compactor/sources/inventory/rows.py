"""Decides which rows of an S3 Inventory are files to plan. No I/O."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from compactor.core.documents.manifest_parsing import ManifestRules
from compactor.core.errors import InventoryError
from compactor.core.inputs.dates import date_of_file
from compactor.core.ports import ObjectInfo
from compactor.sources.candidates import is_hidden, skip_reason
from compactor.sources.input_files import FileScope
from compactor.sources.inventory.document import Inventory
from compactor.sources.plan import Plan
from compactor.sources.spill import SpilledFile

INVENTORY_REASONS = {
    "delete_marker": "a delete marker",
    "old_version": "not the latest version of its object",
    "other_prefix": "in none of the planned prefixes",
    "archived": "in an archive storage class; must be restored before it can be read",
    "gone": "deleted after the inventory was made",
    "replaced": "replaced after the inventory was made; the new version has its own event",
    "repeated": "listed more than once in the inventory",
}
"""Why objects of an inventory are not planned, in addition to `candidates.SKIP_REASONS`: reasons with meanings."""

_ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})  # GLACIER_IR is readable at once
_ARCHIVE_TIERS = frozenset({"ARCHIVE", "DEEP_ARCHIVE"})


class InventoryRow(NamedTuple):
    """One object, or one version of it, in an inventory.

    Attributes:
        key: The decoded key.
        etag: Without quotes; empty for a delete marker.
        modified_at: Time of its last write, UTC.
        is_latest: True also if the inventory lists only latest versions.
        storage_class: Empty if the inventory has no such column.
        access_tier: The intelligent tiering tier; empty if the inventory has no such column.
    """

    bucket: str
    key: str
    size_bytes: int
    etag: str
    modified_at: datetime
    is_latest: bool = True
    is_delete_marker: bool = False
    storage_class: str = ""
    access_tier: str = ""


def _row_reason(row: InventoryRow, uri: str, prefixes: tuple[str, ...], *, hidden: bool = False) -> str | None:
    """Why a row is not a file to plan: one of `INVENTORY_REASONS` or `SKIP_REASONS`; None if it is."""
    if not uri.startswith(prefixes):
        return "other_prefix"
    if row.is_delete_marker:
        return "delete_marker"
    if not row.is_latest:  # guard: an earlier version of an object is not planned
        return "old_version"
    is_passed = not hidden and is_hidden(uri, prefixes)
    reason = skip_reason(uri, row.size_bytes, prefixes, is_hidden=is_passed)
    if reason is None and (row.storage_class in _ARCHIVES or row.access_tier in _ARCHIVE_TIERS):
        return "archived"
    return reason


def files_in_scope(
    inventory: Inventory,
    rows: Iterable[InventoryRow],
    prefixes: tuple[str, ...],
    scope: FileScope,
    rules: ManifestRules,
    plan: Plan,
) -> Iterator[SpilledFile]:
    """Yield the files of an inventory that should be planned; counts all other objects.

    Raises:
        InventoryError: No object is in any of the prefixes.
    """
    is_any_below = False
    for row in rows:
        uri = f"s3://{row.bucket}/{row.key}"
        reason = _row_reason(row, uri, prefixes, hidden=scope.hidden)
        is_any_below = is_any_below or reason != "other_prefix"
        if reason is None and rules.excludes(uri):
            reason = "excluded"
        if reason is None:
            info = ObjectInfo(uri, row.size_bytes, row.etag, row.modified_at)
            dated = date_of_file(uri, row.modified_at)
            reason = scope.reason(dated.date, info)
            if reason is None:
                yield SpilledFile.listed(dated.date, info, dated.rule)
                continue
        plan.skip(reason, uri)
    if not is_any_below:
        elsewhere = plan.skipped["other_prefix"]
        raise InventoryError(
            f"{inventory.uri}: lists {elsewhere:,} objects, but none in {', '.join(prefixes)}; expected an "
            "inventory of this place"
        )

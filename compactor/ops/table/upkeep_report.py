"""What upkeep did to the table of the output, or would do."""

from dataclasses import dataclass


@dataclass(slots=True)
class UpkeepReport:
    """What upkeep did. With `--dry-run` nothing is changed.

    Attributes:
        table: The name of the table.
        exists: Whether there is one.
        keeps_all: Whether its property gc.enabled is false, so that nothing expires or is removed.
        merged_manifests: How many manifests were merged into fewer; 0 if they were few enough.
        expired_snapshots: How many snapshots expired.
        snapshots: How many it has left.
        lists_files: Whether this client can list the files of its metadata; if not, none are removed.
        removed_files: How many files of metadata were removed. None of them has rows.
        removed_bytes: Their total length.
        removed_originals: How many files of rows were removed that merged files took the place of, and nothing needs.
        removed_original_bytes: Their total length.
        dry_run: Whether nothing was changed.
    """

    table: str
    exists: bool = False
    keeps_all: bool = False
    merged_manifests: int = 0
    expired_snapshots: int = 0
    snapshots: int = 0
    lists_files: bool = True
    removed_files: int = 0
    removed_bytes: int = 0
    removed_originals: int = 0
    removed_original_bytes: int = 0
    dry_run: bool = False

"""What merging did to the files of the table, or would do."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class FileSizes:
    """The files of the table at one instant."""

    files: int = 0  # files that the table lists
    size_bytes: int = 0  # their total length
    right_sized_bytes: int = 0  # the length of those of the right size
    lone_bytes: int = 0  # the length of smaller ones that are alone in their partition, which has no more rows
    hit_rate: float = 1.0  # the share of the bytes that are in either; 1 without files


@dataclass(frozen=True, slots=True)
class NotMerged:
    """Files that were left as they are."""

    where: str  # the first of them
    why: str  # why they cannot be merged


@dataclass(slots=True)
class MergeReport:
    """What merging did. With `--dry-run` nothing is changed.

    Attributes:
        table: The name of the table.
        exists: Whether there is one.
        merged_files: How many files became part of others.
        merged_bytes: Their total length.
        made_files: How many files these are now.
        made_bytes: The total length of those; of a dry run, that of the files to merge.
        taken_apart: Merged files that their parts took the place of.
        not_merged: What was left as it is, and why.
        removed_files: Merged files that nothing needs any more, and that were removed.
        removed_bytes: Their total length.
        before: The files before.
        after: The files afterwards; of a dry run, as before.
        dry_run: Whether nothing was changed.
    """

    table: str
    exists: bool = False
    merged_files: int = 0
    merged_bytes: int = 0
    made_files: int = 0
    made_bytes: int = 0
    taken_apart: int = 0
    not_merged: list[NotMerged] = field(default_factory=list)
    removed_files: int = 0
    removed_bytes: int = 0
    before: FileSizes = field(default_factory=FileSizes)
    after: FileSizes = field(default_factory=FileSizes)
    dry_run: bool = False

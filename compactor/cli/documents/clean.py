"""What `compactor clean --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import CountByReason, Document


class Removed(Document):
    """Number of objects that were removed, or would be."""

    archived_manifests: int = Field(description="Archived manifests.")
    redriven_inputs: int = Field(description="Files of redriven lines.")
    staged_files: int = Field(description="Orphaned staged files.")
    checkpoint_files: int = Field(description="Checkpoint files of ended runs.")


class Kept(Document):
    """An object that could not be removed."""

    where: str = Field(description="URI of the object.")
    reason: str = Field(description="Why it has to stay.")


class Cleaning(Document):
    """What was removed by age. With `--dry-run` nothing is removed."""

    dry_run: bool = Field(description="Whether nothing was removed.")
    archive_days: int = Field(description="Age that was applied, in days.")
    removed: Removed = Field(description="Number of objects that were removed, or would be.")
    removed_bytes: int = Field(description="Their size.")
    kept: CountByReason = Field(description="Objects that have to stay, by reason.")
    kept_named: list[Kept] = Field(description="The first hundred of those objects.")


Root = Cleaning

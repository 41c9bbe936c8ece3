"""What `compactor clean --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.upkeep.cleaner import CleaningReport


class Removed(Document):
    """Number of objects that were removed, or would be."""

    archived_manifests: int = Field(description="Archived manifests.")
    redriven_inputs: int = Field(description="Files of redriven lines.")
    rejects_files: int = Field(description="Files of rejects.")
    staged_files: int = Field(description="Orphaned staged files.")
    orphaned_files: int = Field(description="Files in place in the output that no commit names.")
    checkpoint_files: int = Field(description="Checkpoint files of ended runs.")


class Cleaning(Document, of=CleaningReport, without=["failed"]):
    """What was removed by age. With `--dry-run` nothing is removed."""

    dry_run: bool = Field(description="Whether nothing was removed.")
    archive_days: int = Field(description="Age that was applied, in days.")
    removed: Removed = Field(description="Number of objects that were removed, or would be.")


Root = Cleaning

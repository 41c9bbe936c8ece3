"""What `compactor retire --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.retire import report


class Retired(Document, of=report.RetiredDate):
    """What was removed of a date."""

    date: str = Field(description="The date.")
    manifests: int = Field(description="Manifests whose files were removed.")
    rows: int = Field(description="Rows that were removed.")
    rejected_lines: int = Field(description="Rejected lines that were removed, or that were only counted.")
    output_files: int = Field(description="Number of output files.")
    rejects_files: int = Field(description="Number of rejects files.")
    archived_manifests: int = Field(description="Number of archived manifests.")


class NotRetired(Document, of=report.NotRetired):
    """A date that was left as it is."""

    date: str = Field(description="The date.")


class RetireReport(Document, of=report.RetireReport):
    """What was retired. With `--dry-run` nothing is removed."""

    dry_run: bool = Field(description="Whether nothing was removed.")
    before: str = Field(description="The first date that stays.")
    retired: list[Retired] = Field(description="Dates whose files were removed.")
    refused: list[NotRetired] = Field(description="Dates that were left as they are.")


Root = RetireReport

"""What `compactor rebuild --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.rebuild import rebuild_report


class RebuildReport(Document, of=rebuild_report.RebuildReport):
    """What a rebuild did. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    refused: list[rebuild_report.NotRebuilt] = Field(description="Manifests that cannot be rebuilt.")


Root = RebuildReport

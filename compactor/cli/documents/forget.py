"""What `compactor forget --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.forget import forget_report


class ForgetReport(Document, of=forget_report.ForgetReport):
    """What was erased. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    left: int = Field(description="How many manifests and files still hold a value, or may hold one.")
    refused: list[forget_report.NotForgotten] = Field(description="What may still hold a value.")


Root = ForgetReport

"""What `compactor redrive KIND --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ledger.accounts.account import Kind
from compactor.ops.redrive import redrive_report


class RedriveReport(Document, of=redrive_report.RedriveReport):
    """What a redrive did. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    kind: Kind = Field(description="What was to be redriven.")


Root = RedriveReport

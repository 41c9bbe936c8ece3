"""What `compactor dismiss --json` prints."""

from pydantic import Field

from compactor.cli.documents.accept import NotLost
from compactor.cli.documents.common import Document
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ops.accept.dismisser import Dismissible


class DismissedFile(Document, of=QuarantinedFile):
    """A quarantined version of a file."""


class Dismissed(Document, of=Dismissible):
    """What was dismissed. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    why: str = Field(description="Why the files are not expected any more.")
    dismissed: list[DismissedFile] = Field(description="Quarantined versions that are given up.")
    refused: list[NotLost] = Field(description="What is not quarantined.")


Root = Dismissed

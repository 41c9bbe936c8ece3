"""What `compactor accept --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.accept import acceptor


class Lost(Document, of=acceptor.LostRange):
    """A quarantined range of which nothing is left."""

    manifest_id: str = Field(description="The manifest that quarantined it.")
    uri: str = Field(description="The range.")


class NotLost(Document, of=acceptor.NotLost):
    """What is not accepted."""

    manifest_id: str = Field(description="The manifest.")
    why: str = Field(description="Why it is not.")


class Losses(Document, of=acceptor.Losses):
    """What was accepted. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    why: str = Field(description="Why the records are not expected any more.")
    lost: list[Lost] = Field(description="Ranges whose loss was accepted.")
    refused: list[NotLost] = Field(description="What is not accepted.")


Root = Losses

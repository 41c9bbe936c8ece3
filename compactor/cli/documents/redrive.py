"""What `compactor redrive KIND --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import CountByReason, Document
from compactor.ops.redrive.selection import Kind


class Redriven(Document):
    """What was redriven of one manifest, or would be."""

    source: str = Field(description="Manifest that it is taken from.")
    manifest_id: str | None = Field(description="Id of the new manifest; null in a dry run.")
    kind: Kind = Field(description="What was redriven.")
    counts: CountByReason = Field(description="Files, or rejected lines, by reason.")
    files: int = Field(description="Number of input files of the new manifest.")


class Refused(Document):
    """Something that was not redriven."""

    manifest_id: str = Field(description="Manifest that it belongs to.")
    uri: str = Field(description="File; empty for the whole manifest.")
    why: str = Field(description="Reason, in words.")


class RedriveReport(Document):
    """What a redrive did. With `--dry-run` nothing is written."""

    dry_run: bool = Field(description="Whether nothing was written.")
    kind: Kind = Field(description="What was to be redriven.")
    redriven: list[Redriven] = Field(description="What was redriven, or would be.")
    refused: list[Refused] = Field(description="What was not redriven.")
    healed: list[str] = Field(description="Ids of earlier redrives whose manifests were written only now.")


Root = RedriveReport

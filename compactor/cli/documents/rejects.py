"""What `compactor rejects --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.rejects import reader


class RejectedLine(Document, of=reader.RejectedLine, without=["source_uri", "head", "max_line_bytes"]):
    """A rejected line."""

    uri: str = Field(description="File that has the line.")
    manifest_id: str = Field(description="Manifest that rejected it.")
    date: str = Field(description="Date of that manifest.")
    column: int | None = Field(description="Column of the fault, in characters from 1; null if no place is known.")
    message: str = Field(description="What is wrong there, and what was expected.")
    text: str = Field(description="Text around the fault, with escapes for all that acts on a terminal.")
    is_sample: bool = Field(description="Whether its file was quarantined whole, so that this is only a sample.")


class Rejects(Document):
    """Rejected lines, by manifest and file."""

    rejects: list[RejectedLine] = Field(description="The lines, at most as many as `--limit` says.")
    shown: int = Field(description="Number of lines in `rejects`.")
    lines: int = Field(description="Number of rejected lines that `--reason`, `--file` and `--date` ask for.")
    by_reason: dict[str, int] = Field(description="The same by reason.")
    unkept: int = Field(description="Those of them that are only counted, because there were too many to keep.")
    is_complete: bool = Field(description="Whether all manifests were counted; if not, there may be more lines.")
    expired: dict[str, int] = Field(description="Rejected lines of files that expired, by when and under which rule.")
    unreadable: list[str] = Field(description="What cannot be read, and what to do about it: the exit code is 3.")


Root = Rejects

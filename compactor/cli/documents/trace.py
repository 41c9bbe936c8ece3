"""What `compactor trace THING --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.trace import trace


class Trace(Document, of=trace.Trace):
    """Where a file, a manifest, an output or a rejects file is. Texts are empty where they do not apply."""

    date: str = Field(description="Date of that manifest; empty if it is not known.")
    meaning: str = Field(description="State, in words.")
    needs_operator: bool = Field(
        description="Whether it is quarantined or a dead letter and not redriven: the exit code is 3."
    )


Root = Trace

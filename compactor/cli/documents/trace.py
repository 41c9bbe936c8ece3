"""What `compactor trace THING --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.trace import trace


class Trace(Document, of=trace.Trace, shown=["meaning", "needs_operator"]):
    """Where a file, a manifest, an output or a rejects file is. Texts are empty where they do not apply."""

    date: str = Field(description="Date of that manifest; empty if it is not known.")


Root = Trace

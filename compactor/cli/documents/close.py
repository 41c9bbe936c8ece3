"""What `compactor close --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.closing.report import ClosingReport, Summarised


class Summary(Document, of=Summarised):
    """One summary that was written."""

    files: int = Field(description="Number of file versions with rows.")


class Closing(Document, of=ClosingReport):
    """Which dates were closed, and which were not."""

    summarised: list[Summary] = Field(description="Summaries that were written.")
    needs_operator: bool = Field(description="Whether something does not add up: the exit code is 3.")


Root = Closing

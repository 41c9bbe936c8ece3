"""What `compactor verify --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ops.verify.report import VerifyReport


class VerifiedFile(Document, of=QuarantinedFile):
    """A quarantined file."""

    redriven: bool = Field(description="Whether the file has been redriven.")


class Verification(Document, of=VerifyReport, shown=["input_files", "quarantined_by_status"]):
    """What a verification has found."""

    quarantined_files: list[VerifiedFile] = Field(
        description="Quarantined files, settled or not; those of closed dates only if they were not settled by then."
    )
    open_quarantined_files: int = Field(description="Quarantined files that need a person: not settled.")
    open_dead_letters: int = Field(description="Dead letters that need a person: not settled.")


class Verified(Verification):
    """The verification of a manifest, a date or everything."""

    deep: bool = Field(description="Whether input files were read again.")
    needs_operator: bool = Field(description="Whether a person has to act: the exit code is 3.")


class VerifiedStream(Verified):
    """The verification of one stream."""

    stream: str = Field(description="Name of the stream.")


class Streams(Document):
    """The verification of each of several streams."""

    streams: list[VerifiedStream] = Field(description="Streams, as in the settings.")


Root = Verified | Streams

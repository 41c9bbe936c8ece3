"""What `compactor verify --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Verification


class Verified(Verification):
    """The verification of a manifest, a date or everything."""

    deep: bool = Field(description="Whether input files were read again.")
    needs_operator: bool = Field(description="Whether a person has to act: the exit code is 3.")


Root = Verified

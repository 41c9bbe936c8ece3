"""What `compactor deploy check --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.canary.progress import Hop


class DeployCheck(Document):
    """What became of the file that was sent through the deployment."""

    uri: str = Field(description="The file.")
    manifest_id: str = Field(description="Manifest that named it; empty if none did.")
    hops: list[Hop] = Field(description="Hops that it made, in their order.")
    has_row: bool = Field(description="Whether exactly its row is in the output.")
    is_cleaned: bool = Field(description="Whether all of it was removed.")
    leftovers: list[str] = Field(description="Files of earlier checks that were removed.")
    message: str = Field(description="Why it became no row; empty if it did.")


Root = DeployCheck

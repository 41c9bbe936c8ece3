"""What `compactor doctor --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.doctor.findings import State


class Finding(Document):
    """The result of one check."""

    name: str = Field(description="Name of the check, such as `java` or `bucket raw`.")
    state: State = Field(description="Result; `skipped` if the check was not made.")
    found: str = Field(description="What was found, in one line.")
    next_move: str = Field(description="Next action; empty if there is none.")


class Checkup(Document):
    """The results of all checks."""

    faults: int = Field(description="Number of faults; above 0 the exit code is 2.")
    warnings: int = Field(description="Number of warnings.")
    findings: list[Finding] = Field(description="Results, in the order of the checks.")


Root = Checkup

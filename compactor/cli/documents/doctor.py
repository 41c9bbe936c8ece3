"""What `compactor doctor --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.doctor.findings import Finding


class Checkup(Document):
    """The results of all checks."""

    faults: int = Field(description="Number of faults; above 0 the exit code is 2.")
    warnings: int = Field(description="Number of warnings.")
    findings: list[Finding] = Field(description="Results, in the order of the checks.")


Root = Checkup

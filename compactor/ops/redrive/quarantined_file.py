"""A quarantined file, as `status`, `verify` and `report` show it. Values, no I/O."""

from dataclasses import dataclass
from datetime import datetime

from compactor.core.records import FileStatus


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined whole.

    Attributes:
        manifest_id: The manifest that names the file.
        status: Why it was quarantined.
        detail: What was found, and what was expected.
        committed_at: When its manifest was committed.
        redriven: Whether it was redriven since; None where that could not be read.
    """

    manifest_id: str
    uri: str
    status: FileStatus
    detail: str
    committed_at: datetime
    redriven: bool | None

"""A quarantined file, as `status`, `verify` and `report` show it. Values, no I/O."""

from dataclasses import dataclass
from datetime import datetime

from compactor.core.records import FileStatus


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined whole."""

    manifest_id: str
    uri: str
    status: FileStatus  # why it was quarantined
    detail: str  # what was found, and what was expected
    committed_at: datetime  # when its manifest was committed
    redriven: bool | None  # whether it was redriven since; None where that could not be read

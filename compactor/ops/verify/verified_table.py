"""What a verification says of the table of the output."""

from dataclasses import dataclass


@dataclass(slots=True)
class VerifiedTable:
    """The table that lists the output, as it was compared."""

    name: str  # name of the table, as namespace.table
    files: int = 0  # files that the table lists, of what was verified
    rows: int = 0  # the rows of these files
    last_batch: int = 0  # the last batch that the table took
    snapshot_id: int | None = None  # the current snapshot; null without one
    waiting: int = 0  # placed manifests that wait for the table
    waiting_seconds: float | None = None  # for how long the first of these has; null without one
    held: int = 0  # manifests that are held back, because the catalog refuses them
    error: str = ""  # why the table could not be compared; empty if it was

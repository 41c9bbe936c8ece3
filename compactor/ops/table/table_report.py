"""What the table of the output has, compared with the ledger."""

from dataclasses import dataclass, field

from compactor.core.results import as_document


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A manifest that the catalog refuses: it is left out of the table.

    Attributes:
        manifest_id: Its id.
        date: Its date, as YYYY-MM-DD.
        generation: 1, or which rebuild of it.
        batch: The batch that was refused with it alone.
        reason: Why, in the catalog's words.
    """

    manifest_id: str
    date: str
    generation: int
    batch: int
    reason: str


@dataclass(frozen=True, slots=True)
class StuckManifest:
    """A manifest that `rebuild` could not add to the table.

    Attributes:
        manifest_id: Its id.
        date: Its date, as YYYY-MM-DD.
        generation: 1, or which rebuild of it.
        why: What a person must fix.
    """

    manifest_id: str
    date: str
    generation: int
    why: str


@as_document(shows=("needs_operator",))
@dataclass(slots=True)
class TableReport:
    """The table, and each file that it has otherwise than the ledger.

    Attributes:
        table: Its name.
        exists: Whether there is one.
        snapshot_id: Its current snapshot; None without one.
        last_batch: The last batch that it took.
        recorded_batch: The last batch on record.
        schema_version: The schema version whose columns it has.
        files: How many files it has.
        rows: How many rows these have.
        merged: How many of them have the rows of several files of commits.
        missing: Files of manifests that are done and that it lacks.
        surplus: Files that it has and that are of no valid commit.
        doubled: Files that it has more than once.
        differing: Files with another number of rows, or another length, than on record.
        held: Manifests that the table lacks because the catalog refuses them.
        applied: Batches on record that `rebuild` applied.
        adopted: Manifests that were in no batch, or held back, and that `rebuild` added.
        stuck: Manifests that `rebuild` could not add, without those that are held back.
    """

    table: str
    exists: bool = False
    snapshot_id: int | None = None
    last_batch: int = 0
    recorded_batch: int = 0
    schema_version: int = 0
    files: int = 0
    rows: int = 0
    merged: int = 0
    missing: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    held: list[HeldBack] = field(default_factory=list)
    applied: int = 0
    adopted: int = 0
    stuck: list[StuckManifest] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether the table has other files than the ledger."""
        return not self.exists or bool(self.missing or self.surplus or self.doubled or self.differing)

    @property
    def needs_operator(self) -> bool:
        """Whether it has other files than the ledger, or manifests are held back or stuck: the exit code is 3."""
        return self.differs or bool(self.held or self.stuck)

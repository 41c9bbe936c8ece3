"""What a redrive did, or would do."""

from collections import Counter
from dataclasses import dataclass, field

from compactor.ledger.accounts.account import Kind


@dataclass(frozen=True, slots=True)
class Redriven:
    """One new manifest."""

    source: str  # the manifest that it redrives
    manifest_id: str | None  # the new manifest; None in a dry run, which takes no id
    kind: Kind
    counts: dict[str, int]  # what it redrives, by reason: files, or lines for rejects
    files: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that cannot be redriven."""

    manifest_id: str  # the manifest that it belongs to
    uri: str  # the file; empty for the whole manifest
    why: str  # the reason, in words


@dataclass(slots=True)
class RedriveReport:
    """What a redrive did. With `--dry-run` nothing is written."""

    kind: Kind  # what was to be redriven
    dry_run: bool = False  # whether nothing was written
    # Rejected lines that are as wrong as before, by reason: they were left where they are
    unchanged: Counter[str] = field(default_factory=Counter)
    redriven: list[Redriven] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    # Manifests of earlier redrives that were interrupted before they wrote them
    healed: list[str] = field(default_factory=list)

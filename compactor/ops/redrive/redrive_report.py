"""What a redrive did, or would do."""

from dataclasses import dataclass, field

from compactor.ops.redrive.selection import Kind


@dataclass(frozen=True, slots=True)
class Redriven:
    """One new manifest.

    Attributes:
        source: The manifest that it redrives.
        manifest_id: The new manifest; None in a dry run, which takes no id.
        counts: What it redrives, by reason: files, or lines for rejects.
        files: The number of its input files.
    """

    source: str
    manifest_id: str | None
    kind: Kind
    counts: dict[str, int]
    files: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that cannot be redriven.

    Attributes:
        manifest_id: The manifest that it belongs to.
        uri: The file; empty for the whole manifest.
        why: The reason, in words.
    """

    manifest_id: str
    uri: str
    why: str


@dataclass(slots=True)
class RedriveReport:
    """The result of one redrive.

    Attributes:
        redriven: The new manifests.
        refused: What was not redriven.
        healed: Manifests of earlier redrives that were interrupted before they wrote them.
    """

    redriven: list[Redriven] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    healed: list[str] = field(default_factory=list)

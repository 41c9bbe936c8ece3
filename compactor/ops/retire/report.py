"""What a call of `compactor retire` did, or would do."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RetiredDate:
    """A date, or what was added to it since it was retired."""

    date: str
    manifests: int
    rows: int
    rejected_lines: int
    output_files: int
    rejects_files: int
    archived_manifests: int
    size_bytes: int  # of all these files
    in_work: int = 0  # manifests whose files stay until the next call, because they are being rebuilt


@dataclass(frozen=True, slots=True)
class NotRetired:
    """A date that was left as it is."""

    date: str
    why: str  # the reason, in words


@dataclass(slots=True)
class RetireReport:
    """What was retired."""

    retired: list[RetiredDate] = field(default_factory=list)  # dates whose files were removed
    refused: list[NotRetired] = field(default_factory=list)  # dates that were left as they are
    retired_before: int = 0  # dates that earlier calls have retired
    finished: int = 0  # deletions that an earlier call began and did not finish

"""What a call of `compactor retire` did, or would do."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RetiredDate:
    """A date, or what was added to it since it was retired."""

    date: str  # the date
    manifests: int  # manifests whose files were removed
    rows: int  # rows that were removed
    rejected_lines: int  # rejected lines that were removed, or that were only counted
    output_files: int  # number of output files
    rejects_files: int  # number of rejects files
    archived_manifests: int  # number of archived manifests
    size_bytes: int  # of all these files
    in_work: int = 0  # manifests whose files stay until the next call, because they are being rebuilt


@dataclass(frozen=True, slots=True)
class NotRetired:
    """A date that was left as it is."""

    date: str  # the date
    why: str  # the reason, in words


@dataclass(slots=True)
class RetireReport:
    """What was retired. With `--dry-run` nothing is removed."""

    before: str  # the first date that stays
    dry_run: bool = False  # whether nothing was removed
    retired: list[RetiredDate] = field(default_factory=list)  # dates whose files were removed
    refused: list[NotRetired] = field(default_factory=list)  # dates that were left as they are
    retired_before: int = 0  # dates that earlier calls have retired
    finished: int = 0  # deletions that an earlier call began and did not finish

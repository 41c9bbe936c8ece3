"""What a call of `compactor close` did."""

from dataclasses import dataclass, field

from compactor.core.results import as_document
from compactor.ops.verify.report import Discrepancy


@dataclass(frozen=True, slots=True)
class Summarised:
    """One summary that was written."""

    date: str
    number: int  # 1 closed the date; a higher one is an addition
    manifests: int
    files: int  # number of file versions with rows


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """One date that stays open, or whose addition waits."""

    date: str
    why: str  # the reason, in words
    is_wrong: bool = False  # whether something does not add up, and not only time has to pass


@as_document(shows=("needs_operator",))
@dataclass(slots=True)
class ClosingReport:
    """Which dates were closed, and which were not."""

    summarised: list[Summarised] = field(default_factory=list)  # summaries that were written
    left_open: list[LeftOpen] = field(default_factory=list)  # dates that stay open, or whose addition waits
    discrepancies: list[Discrepancy] = field(default_factory=list)  # what keeps dates open, or is there twice

    @property
    def needs_operator(self) -> bool:
        """Whether something does not add up: the exit code is 3."""
        return bool(self.discrepancies) or any(each.is_wrong for each in self.left_open)

"""What came of landing a log."""

from dataclasses import dataclass, field

from compactor.core.documents.landing import LandedLink
from compactor.core.errors import CompactorError
from compactor.core.logs.names import LogGap, LogName
from compactor.sources.plan import Plan


def about_log(log: LogName) -> dict[str, str]:
    """The dimension of the metrics of a log."""
    return {"Log": str(log)}


@dataclass(slots=True)
class LandingResult:
    """The result of landing a log.

    Attributes:
        totals: The manifests; `held` counts objects whose records others landed.
        lines: Landed lines.
        gaps: Where records may be lost; each is in one manifest, and told by all that settled that.
        tombstones: Records without a value, of which there is no line.
        strays: Packed records that were left out, because they hash to another shard.
        closed: Shards that ended.
        waiting: Shards whose parents are not landed whole.
        has_more: Whether more is left beyond the bound, for the next time.
        swept: Objects that were deleted, of landings that died.
        former_ids: Ids of logs of this name that are gone, of which records were landed.
        behind_seconds: For how long the oldest record that is not landed may have waited, by the last answer of each
            partition; None if none was to be read.
        log_id: The id of the log that is there.
        has_read: Whether some partition was read without trouble.
        troubles: What kept it from landing more. All else that it tells has happened.
    """

    totals: Plan = field(default_factory=Plan)
    lines: int = 0
    gaps: list[LogGap] = field(default_factory=list)
    tombstones: int = 0
    strays: int = 0
    closed: int = 0
    waiting: int = 0
    has_more: bool = False
    swept: int = 0
    former_ids: list[str] = field(default_factory=list)
    behind_seconds: float | None = None
    log_id: str = ""
    has_read: bool = False
    troubles: list[CompactorError] = field(default_factory=list)

    @property
    def needs_operator(self) -> bool:
        """Whether records may be gone that were not landed."""
        return bool(self.gaps)

    def add(self, link: LandedLink) -> None:
        """Count a link."""
        self.lines += link.lines
        self.tombstones += link.tombstones
        self.strays += link.strays
        self.closed += link.closes

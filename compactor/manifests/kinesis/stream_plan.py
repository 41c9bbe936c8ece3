"""What came of planning a stream."""

from dataclasses import dataclass, field

from compactor.core.documents.chains.kinesis_records import KinesisLink
from compactor.core.errors import CompactorError
from compactor.core.kinesis.places import SCHEME, KinesisStream, StreamGap
from compactor.manifests.plan import Plan
from compactor.telemetry.logs import log_event


@dataclass(frozen=True, slots=True)
class Gap:
    """Where records may be lost to retention before they were landed.

    Attributes:
        shard: The shard.
        after: The sequence number of the last record before; "0" if there is none.
        before: That of the first record behind it; empty if there is none.
    """

    shard: str
    after: str
    before: str

    def __str__(self) -> str:
        return f"{self.shard}: {self.of(KinesisStream('', '')).words}"

    def of(self, stream: KinesisStream) -> StreamGap:
        """The name that manifests have for it."""
        return StreamGap(stream, self.shard, int(self.after), int(self.before or 0))


def gap_of(shard_id: str, link: KinesisLink) -> Gap:
    """Where records before a link may be lost."""
    return Gap(shard_id, link.after, link.begins)


def tell(stream: KinesisStream, gap: Gap) -> None:
    """Put a gap into the log."""
    log_event("kinesis.gap", stream=stream.name, shard=gap.shard, after=gap.after, before=gap.before)


def about_stream(stream: KinesisStream) -> dict[str, str]:
    """The dimension of the metrics of a stream."""
    return {"KinesisStream": str(stream).removeprefix(SCHEME)}


@dataclass(slots=True)
class StreamPlan:
    """The result of planning a stream.

    Attributes:
        totals: The manifests; `held` counts objects whose records another planner landed.
        lines: Landed lines.
        gaps: Where records may be lost; each is in one manifest, and told by all planners that settled that.
        strays: Packed records that were left out, because they hash to another shard.
        closed: Shards that ended.
        waiting: Shards whose parents are not landed whole.
        has_more: Whether more is left beyond the bound, for the next plan.
        swept: Objects that were deleted, of planners that died.
        former_ids: Ids of streams of this name that are gone, of which records were landed.
        behind_seconds: For how long the oldest record that is not landed may have waited, by the last answer of each
            shard; None if no shard was to be read.
        stream_id: The id of the stream that is there.
        has_read: Whether some shard was read without trouble.
        troubles: What kept the plan from landing more. All else that it tells has happened.
    """

    totals: Plan = field(default_factory=Plan)
    lines: int = 0
    gaps: list[Gap] = field(default_factory=list)
    strays: int = 0
    closed: int = 0
    waiting: int = 0
    has_more: bool = False
    swept: int = 0
    former_ids: list[str] = field(default_factory=list)
    behind_seconds: float | None = None
    stream_id: str = ""
    has_read: bool = False
    troubles: list[CompactorError] = field(default_factory=list)

    @property
    def needs_operator(self) -> bool:
        """Whether records may be gone that were not landed."""
        return bool(self.gaps)

    def add(self, link: KinesisLink) -> None:
        """Count a link."""
        self.lines += link.lines
        self.strays += link.strays
        self.closed += link.closes

"""How many honest lines were committed in each phase, and how long their manifests had to wait."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.changes import Commit
from compactor.ledger.ledger import Ledger
from tests.soak.phases import CALM, TROUBLE
from tests.soak.trouble import is_troubled

SHARE_MIN = 0.7
"""Of the lines a second without trouble, how many there have to be beside it."""

JUDGED_SECONDS = 60.0
"""Over a shorter time, chance has more to say than trouble."""


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a phase that is measured: the job was neither killed nor short of its store."""

    name: str
    began: datetime
    ended: datetime

    @property
    def seconds(self) -> float:
        return (self.ended - self.began).total_seconds()


@dataclass(frozen=True, slots=True)
class Throughput:
    """What was committed in a span, of honest manifests alone.

    Attributes:
        delays: Seconds from delivery to commit, of each manifest that is delivered once.
        decided: Troubled manifests with an outcome.
    """

    span: Span
    manifests: int
    lines: int
    delays: tuple[float, ...]
    decided: int

    @property
    def rate(self) -> float:
        """Lines a second."""
        return self.lines / self.span.seconds

    def __str__(self) -> str:
        delay = (
            f"; delay {statistics.median(self.delays):.1f} s, longest {max(self.delays):.1f} s" if self.delays else ""
        )
        beside = f"; {self.decided} troubled manifests decided" if self.decided else ""
        committed = f"{self.manifests:,} manifests, {self.lines:,} lines in {self.span.seconds:.0f} s"
        return f"{self.rate:,.0f} lines/s ({committed}){delay}{beside}"


def throughputs(ledger: Ledger, spans: Sequence[Span], delivered: Mapping[str, datetime]) -> list[Throughput]:
    """Measure each span by the commits on record.

    Args:
        ledger: Has them.
        spans: When.
        delivered: When each manifest came, by its id.
    """
    outcomes = [state.outcome for key in ledger.manifests() if (state := ledger.state(key)).outcome is not None]
    return [_throughput(span, outcomes, delivered) for span in spans]


def _throughput(span: Span, outcomes: Sequence[object], delivered: Mapping[str, datetime]) -> Throughput:
    ended = [each for each in outcomes if span.began <= each.decided_at < span.ended]  # type: ignore[attr-defined]
    honest = [each for each in ended if isinstance(each, Commit) and not is_troubled(each.manifest_id)]
    return Throughput(
        span,
        manifests=len(honest),
        lines=sum(file.records for each in honest for file in each.files),
        delays=tuple(
            (each.decided_at - delivered[each.manifest_id]).total_seconds()
            for each in honest
            if each.manifest_id in delivered
        ),
        decided=sum(is_troubled(each.manifest_id) for each in ended),  # type: ignore[attr-defined]
    )


def share(measured: Sequence[Throughput]) -> float | None:
    """The lines a second beside trouble in relation to those without; None if it was not measured for long enough."""
    by_name = {each.span.name: each for each in measured}
    calm, trouble = by_name.get(CALM), by_name.get(TROUBLE)
    if calm is None or trouble is None or min(calm.span.seconds, trouble.span.seconds) < JUDGED_SECONDS:
        return None
    return trouble.rate / calm.rate if calm.rate else 0.0

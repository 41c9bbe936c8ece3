"""A report: the figures of a period with the verdict on them and their price, as one value. No I/O."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from compactor.ops.report.figures import Bucket, DeadLetterLine, Figures, QuarantinedFile, Sizes, Spread, Totals
from compactor.ops.report.spending import Spending
from compactor.ops.report.verdict import Verdict

_ELSEWHERE = frozenset({"durations", "arrivals", "quarantined"})
"""Figures of work that have another place, or form, in the document."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a page shows.

    Attributes:
        made_at: When the ledger was read.
        place: Whose period it is: the prefix of the state.
        sla_seconds: How long a file may take to be visible; a manifest may take half of it.
        has_samples: Rejected lines were read as well.
    """

    made_at: datetime
    place: str
    sla_seconds: float
    has_samples: bool
    figures: Figures
    verdict: Verdict
    spending: Spending

    @property
    def needs_operator(self) -> bool:
        """Whether something of the period waits for a person."""
        return self.verdict.health == "act"

    def document(self) -> dict[str, Any]:
        """The same for programs, under the names that other commands have for it."""
        figures = self.figures
        return {
            "as_of": self.made_at,
            "state_folder": self.place,
            "period": figures.period,
            "sla_seconds": self.sla_seconds,
            "needs_operator": self.needs_operator,
            "verdict": _verdict(self.verdict),
            "totals": _work(figures.totals),
            "bucket_seconds": figures.step_seconds,
            "buckets": [_work(each) for each in figures.buckets],
            "sizes": _sizes(figures.sizes),
            "rejects": figures.rejects,
            "dead_letters": {
                "manifests": figures.dead_letters_kept,
                "by_reason": figures.dead_letters_by_reason,
                "latest": [_set_aside(each) for each in figures.dead_letters],
            },
            "quarantined_files": {
                "by_status": figures.totals.quarantined,
                "latest": [_set_aside(each) for each in figures.quarantined_files],
            },
            "schema": {
                "version": figures.schema_version,
                "columns": figures.columns,
                "changes": figures.schema_changes,
            },
            "unreadable": {"records": figures.unreadable_records, "messages": figures.unreadable},
            "cost": _cost(self.spending),
        }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    points = [{"word": point.health, "reason": point.text} for point in verdict.points]
    return {"word": verdict.health, "headline": verdict.headline, "points": points}


def _work(done: Totals | Bucket) -> dict[str, Any]:
    named = {each.name: getattr(done, each.name) for each in fields(done) if each.name not in _ELSEWHERE}
    return {**named, "durations": _spread(done.durations, "manifests"), "latency": _spread(done.arrivals, "files")}


def _spread(spread: Spread | None, of: str) -> dict[str, Any] | None:
    if spread is None:
        return None
    named = asdict(spread)
    return {of: named.pop("values"), **named}


def _sizes(sizes: Sizes) -> dict[str, Any]:
    named = asdict(sizes)
    return {"target_file_bytes": named.pop("target_bytes"), **named}


def _set_aside(line: DeadLetterLine | QuarantinedFile) -> dict[str, Any]:
    named = asdict(line)
    return {"done_at": named.pop("since"), "redriven": named.pop("is_redriven"), **named}


def _cost(spent: Spending) -> dict[str, Any]:
    """Under the names of `compactor cost`: what was measured, and what it is compared to."""
    return {
        "job": asdict(spent.job),
        "is_job_named": spent.is_job_named,
        "is_local": spent.is_local,
        "elapsed_seconds": spent.elapsed_seconds,
        "at_work_seconds": spent.at_work_seconds,
        "dollars_elapsed": spent.job_dollars,
        "dollars_at_work": spent.at_work_dollars,
        "dollars_per_terabyte_elapsed": spent.job_dollars_per_terabyte,
        "dollars_per_terabyte_at_work": spent.at_work_dollars_per_terabyte,
        "compared": {
            **asdict(spent.classic),
            "dollars_elapsed": spent.classic_dollars,
            "dollars_per_terabyte_elapsed": spent.classic_dollars_per_terabyte,
        },
        "services": spent.services,
    }

"""A report: the figures of a period, the verdict on them and their price. No I/O."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from compactor.ops.report.figures import Figures, Spread, Work
from compactor.ops.report.spending import Spending
from compactor.ops.report.verdict import Verdict

_POINT = ("condition", "severity", "reason", "next_move")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a page shows.

    Attributes:
        made_at: When the ledger was read.
        place: The prefix of the state.
        sla_seconds: How long a file may take to become visible; a manifest may take half of it.
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
        return self.verdict.severity == "act"

    def document(self) -> dict[str, Any]:
        """The report as JSON, with the key names that other commands use."""
        figures, verdict = self.figures, self.verdict
        return {
            "as_of": self.made_at,
            "state_folder": self.place,
            "period": figures.period,
            "sla_seconds": self.sla_seconds,
            "needs_operator": self.needs_operator,
            "verdict": {
                "severity": verdict.severity,
                "headline": verdict.headline,
                "points": [{name: getattr(each, name) for name in _POINT} for each in verdict.points],
            },
            "totals": _work(figures.totals),
            "bucket_seconds": figures.step_seconds,
            "buckets": [_work(each) for each in figures.buckets],
            "sizes": figures.sizes,
            "rejects": figures.rejects,
            "dead_letters": {
                "manifests": figures.dead_letters_kept,
                "by_reason": figures.dead_letters_by_reason,
                "latest": figures.dead_letters,
            },
            "quarantined_files": {
                "by_status": figures.totals.quarantined,
                "latest": figures.quarantined_files,
            },
            "schema": {
                "version": figures.schema_version,
                "columns": figures.columns,
                "changes": figures.schema_changes,
            },
            "unreadable": {"records": figures.unreadable_records, "messages": figures.unreadable},
            "cost": _cost(self.spending),
        }


def _work(done: Work) -> dict[str, Any]:
    named = {each.name: getattr(done, each.name) for each in fields(done) if each.name != "quarantined"}
    named["durations"], named["latency"] = _spread(done.durations, "manifests"), _spread(named.pop("arrivals"), "files")
    return named


def _spread(spread: Spread | None, of: str) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {of if name == "values" else name: value for name, value in asdict(spread).items()}


def _cost(spent: Spending) -> dict[str, Any]:
    """With the key names of `compactor cost`."""
    plain = ("job", "is_job_named", "is_local", "elapsed_seconds", "at_work_seconds", "services")
    elapsed, at_work, compared = spent.job_dollars, spent.at_work_dollars, spent.classic_dollars
    return {
        **{name: getattr(spent, name) for name in plain},
        "dollars_elapsed": elapsed,
        "dollars_at_work": at_work,
        "dollars_per_terabyte_elapsed": spent.per_terabyte(elapsed),
        "dollars_per_terabyte_at_work": spent.per_terabyte(at_work),
        "compared": {
            **asdict(spent.classic),
            "dollars_elapsed": compared,
            "dollars_per_terabyte_elapsed": spent.per_terabyte(compared),
        },
    }

"""A report: the figures of a period with the verdict on them and their price, as one value. No I/O."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from compactor.report.figures import Figures
from compactor.report.spending import Spending
from compactor.report.verdict import Verdict


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

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        figures = {each.name: getattr(self.figures, each.name) for each in fields(self.figures)}
        spent = self.spending
        return {
            "made_at": self.made_at,
            "place": self.place,
            "sla_seconds": self.sla_seconds,
            "verdict": {"standing": self.verdict.standing, "points": [point.text for point in self.verdict.points]},
            **figures,
            "cost": {each.name: getattr(spent, each.name) for each in fields(spent)},
        }

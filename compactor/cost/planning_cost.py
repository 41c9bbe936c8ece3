"""The cost of planning files from an inventory, at list prices: claims and requests, not the compaction itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from compactor.cost.cost import CLAIM_BYTES
from compactor.cost.prices import GIB, Price, prices_of
from compactor.settings.settings import CLAIM_DAYS, Settings
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.sources.plan import Plan

_DAYS_PER_MONTH = 365 / 12
_PUTS = 2  # the manifest, and the record that binds its id
_LISTS = 1  # of the watched prefix; each costs as much as a PUT
_GETS = 3  # checks whether files still exist


@dataclass(frozen=True, slots=True)
class PlanningCost:
    """Dollars for one back-fill.

    Attributes:
        claims_written: Dollars for claiming each planned file.
        claims_read: Dollars for looking up all claims once; each further call pays it again.
        claims_kept: Dollars for storing the claims, restorable, until they expire.
        requests: Dollars for S3 requests.
    """

    claims_written: float = 0.0
    claims_read: float = 0.0
    claims_kept: float = 0.0
    requests: float = 0.0

    @property
    def dollars(self) -> float:
        """The total."""
        return self.claims_written + self.claims_read + self.claims_kept + self.requests


def cost_of_plan(settings: Settings, plan: Plan) -> PlanningCost:
    """The cost of a plan's claims and requests in the settings' region."""
    builder = settings.builder
    in_dynamodb = builder.claims not in {"", JOURNAL_CLAIMS}
    return planning_cost(
        plan.files + plan.planned_before + plan.held,
        plan.files,
        len(plan.manifests),
        claim_days=CLAIM_DAYS if in_dynamodb else None,
        prices=prices_of(settings.aws.region),
    )


def planning_cost(
    files: int, planned_files: int, manifests: int, *, claim_days: float | None, prices: Mapping[str, Price]
) -> PlanningCost:
    """Price a back-fill."""
    requests = prices["s3_put"].dollars_for(manifests * (_PUTS + _LISTS)) + prices["s3_get"].dollars_for(
        manifests * _GETS
    )
    if claim_days is None:
        return PlanningCost(requests=requests)
    kept_gib = planned_files * CLAIM_BYTES / GIB * claim_days / _DAYS_PER_MONTH
    return PlanningCost(
        claims_written=prices["dynamodb_write"].dollars_for(planned_files),
        claims_read=prices["dynamodb_read"].dollars_for(files),
        claims_kept=prices["dynamodb_storage"].dollars_for(kept_gib) + prices["dynamodb_pitr"].dollars_for(kept_gib),
        requests=requests,
    )

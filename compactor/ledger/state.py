"""What the use-cases share: the store, its layout, the ledger, the clock, the rules for manifests and the meter."""

from dataclasses import dataclass, field

from compactor.core.documents.manifest_parsing import DEFAULT_RULES, ManifestRules
from compactor.core.layout import Layout
from compactor.core.ports import Clock, ObjectStore
from compactor.ledger.ledger import Ledger
from compactor.telemetry.meter import Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of one deployment, as seen by one process."""

    store: ObjectStore
    layout: Layout
    ledger: Ledger
    clock: Clock
    rules: ManifestRules = DEFAULT_RULES
    meter: Meter = field(default_factory=Meter)

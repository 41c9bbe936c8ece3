"""Upkeep of a table in any catalog, by a ledger of its own in memory."""

from datetime import datetime, timedelta

from compactor.core.documents.table_records import BatchedManifest
from compactor.core.layout import Layout
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ops.table.maintainer import Maintainer
from compactor.table.catalog import TableCatalog
from compactor.table.upkeep import KeepRule
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.table_catalogs import DATE

LAYOUT = Layout(manifests="/lake/manifests", output="/lake/output", state="/lake/state")
OWNER = LAYOUT.table_owner


def maintainer(catalog: TableCatalog, at: datetime, *, days: float = 0, least: int = 1, batches: int = 4) -> Maintainer:
    """Upkeep at a time.

    Args:
        catalog: Has the table.
        at: The time.
        days: How long snapshots stay.
        least: How many stay.
        batches: So many are on record.
    """
    store, clock = MemoryStore(), ManualClock(at)
    state = State(store=store, layout=LAYOUT, ledger=Ledger(store, LAYOUT, clock, "run"), clock=clock)
    recorded = TableBatches(state)
    for each in range(1, batches + 1):
        recorded.create(each, [BatchedManifest(date=DATE, manifest_id=f"m{each}")])
    rule = KeepRule(timedelta(days=days), least)
    return Maintainer(state=state, batches=recorded, catalog=catalog, name="lake.events", rule=rule)

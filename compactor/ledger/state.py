"""What the use-cases share: the store, where everything is in it, what is on record, and the time."""

from dataclasses import dataclass

from compactor.core.layout import Layout
from compactor.core.ports import Clock, ObjectStore
from compactor.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of one deployment, as one process works on it."""

    store: ObjectStore
    layout: Layout
    ledger: Ledger
    clock: Clock

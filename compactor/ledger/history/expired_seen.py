"""Tells in a few figures what expired: the same for each command that shows it."""

from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.expired import Expiry
from compactor.core.layout import is_date
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class ExpiredKind:
    """What is on record as expired under one kind of rule."""

    kind: Expiry  # rule: retired dates, or the age of archived manifests, redriven lines or rejects
    dates: int  # dates of which something expired
    first_date: str  # the earliest of them
    last_date: str  # the latest of them
    recorded_at: datetime  # time of the latest record


@dataclass(frozen=True, slots=True)
class ExpiredSeen:
    """What is on record as expired."""

    retired_dates: int = 0  # dates that `compactor retire` took
    expiring: int = 0  # records of what expired whose deletion is not finished
    kinds: tuple[ExpiredKind, ...] = ()  # by kind of rule, those with a record

    def __bool__(self) -> bool:
        return bool(self.kinds or self.expiring)


NOTHING_EXPIRED = ExpiredSeen()


def expired_seen(state: State) -> ExpiredSeen:
    """What is on record as expired. Reads no record: costs a listing, of one request for 1,000 records."""
    layout, dates, recorded_at = state.layout, dict[Expiry, set[str]](), dict[Expiry, datetime]()
    for info in state.store.list(layout.expired_folder):
        kind, date, name = [*info.uri.removeprefix(layout.expired_folder).split("/", 2), "", ""][:3]
        if kind in set(Expiry) and is_date(date) and name.endswith(".json"):
            dates.setdefault(Expiry(kind), set()).add(date)
            recorded_at[Expiry(kind)] = max(info.modified_at, recorded_at.get(Expiry(kind), info.modified_at))
    return ExpiredSeen(
        retired_dates=len(dates.get(Expiry.RETIRED, ())),
        expiring=sum(1 for _ in state.store.list(layout.expiring_folder)),
        kinds=tuple(
            ExpiredKind(kind, len(dates[kind]), min(dates[kind]), max(dates[kind]), recorded_at[kind])
            for kind in Expiry
            if kind in dates
        ),
    )

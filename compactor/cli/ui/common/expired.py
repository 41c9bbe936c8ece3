"""What the commands show of what expired, in the same words."""

from collections.abc import Mapping

from compactor.core.documents.expired import Expiry
from compactor.core.text.formatting import count
from compactor.ledger.history.expired_seen import ExpiredKind, ExpiredSeen

_OF: Mapping[Expiry, str] = {
    Expiry.RETIRED: "retired",
    Expiry.ARCHIVE: "archive",
    Expiry.REDRIVEN: "redriven lines",
    Expiry.REJECTS: "rejects",
}


def expired_lines(seen: ExpiredSeen) -> list[str]:
    """A line for each kind of rule, and one for deletions that are not finished."""
    lines = [_line(each) for each in seen.kinds]
    return [*lines, unfinished(seen.expiring)] if seen.expiring else lines


def unfinished(expiring: int) -> str:
    """Deletions that are not finished, and what finishes them."""
    return f"{count(expiring, 'deletion')} not finished; the next `compactor clean` or `retire` does"


def _line(each: ExpiredKind) -> str:
    span = each.first_date if each.dates == 1 else f"{each.first_date} to {each.last_date}"
    when = f"{'on' if each.dates == 1 else 'last on'} {each.recorded_at:%Y-%m-%d}"
    return f"{_OF[each.kind]}: {count(each.dates, 'date')} ({span}), {when}"

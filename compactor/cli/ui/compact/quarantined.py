"""What `compactor compact` shows of quarantined files: the first of each kind, with what is wrong with it."""

from collections.abc import Iterable

from compactor.core.documents.records import FileStatus
from compactor.core.text.formatting import count
from compactor.ledger.accounts.account import QuarantinedFile

_SHOWN = 5


def quarantined_lines(files: Iterable[QuarantinedFile]) -> list[str]:
    """A line for each kind of files, and one for the kinds that are too many to show."""
    kinds: dict[str, list[QuarantinedFile]] = {}
    for each in files:
        kinds.setdefault(each.detail if each.status is FileStatus.NOT_NDJSON else each.status, []).append(each)
    lines = [_line(those) for those in list(kinds.values())[:_SHOWN]]
    left = sum(map(len, list(kinds.values())[_SHOWN:]))
    return [*lines, f"and {count(left, 'file')} of other kinds"] if left else lines


def _line(files: list[QuarantinedFile]) -> str:
    """The first one of some, and how many more there are."""
    first = files[0]
    why = first.detail.removeprefix(f"cannot read {first.uri}: ") or first.status
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return f"{first.uri} ({why}){more}"

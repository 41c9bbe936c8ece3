"""Counts the dead letters that are kept, and finds those that may still wait for a person.

Where dates are closed, the summaries have the dead letters of closed dates, and the marks of other manifests tell most
commits. So only the rest is looked for: by name or, if that is much, by one request for the folder of dead letters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.history.unsummarised import Unsummarised
from compactor.ledger.state import State

PAGE_OBJECTS = 1_000
"""As many objects as S3 lists in one request."""

ASKED_FOR = 20
"""Up to so many dead letters are asked for by name at once."""

_REASON_SUFFIX = ".reason.json"


@dataclass(frozen=True, slots=True)
class KeptLetters:
    """The dead letters that are kept.

    Attributes:
        manifests: All of them, redriven or not.
        waiting: The reasons of those that were not redriven before their dates were closed, by their URIs.
    """

    manifests: int
    waiting: list[ObjectInfo]


def letter_id(reason: ObjectInfo) -> str:
    """The manifest that is a dead letter, by its reason."""
    return base_name(reason.uri).removesuffix(_REASON_SUFFIX)


def kept_letters(state: State, found: Unsummarised | None) -> KeptLetters:
    """The dead letters that are kept, given what is in no summary; without that, the whole folder is listed."""
    if found is None:
        reasons = _reasons(state.store.list(state.layout.failed_folder))
        return KeptLetters(len(reasons), reasons)
    closed = {each.manifest_id for each in found.totals.letters}
    others = {key.id for key in found.keys if key not in found.commits}
    if len(closed | others) > ASKED_FOR:
        page = list(islice(state.store.list(state.layout.failed_folder), PAGE_OBJECTS))
        if len(page) < PAGE_OBJECTS:
            reasons = _reasons(page)
            return KeptLetters(len(reasons), [info for info in reasons if letter_id(info) in closed | others])
    places = sorted(map(state.layout.failure_reason, closed | others))
    waiting = [info for info in map_ordered(state.store.stat, places) if info is not None]
    later = sum(letter_id(info) not in closed for info in waiting)
    return KeptLetters(found.totals.sums.dead_letters + later, waiting)


def _reasons(listed: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    return [info for info in listed if info.uri.endswith(_REASON_SUFFIX)]

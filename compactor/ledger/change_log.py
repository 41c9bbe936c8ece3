"""The log of changes to what is done; `Ledger.decide` puts each on record. It is read where something is gone.

A change that deletes is first begun: the intention stays until all is deleted, so that any later call carries it out if
this one dies.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from compactor.core.documents.changes import (
    GivenUp,
    How,
    LaterChange,
    Merge,
    Release,
    Why,
)
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import base_name, digest, is_date
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

L = TypeVar("L", bound=LaterChange)


def begin_change(state: State, change: LaterChange) -> None:
    """Put the intention of a change on record, so that the next call carries it out if this one dies."""
    state.store.create(state.layout.changing(change.why, change.about, change.id), change.to_json())


def end_change(state: State, change: LaterChange) -> None:
    """Forget the intention: all of the change took effect."""
    state.store.delete([state.layout.changing(change.why, change.about, change.id)])


def unfinished(state: State, kind: type[L], whys: Collection[Why] = (), *, skips_damaged: bool = False) -> Iterator[L]:
    """The intentions of changes of a kind.

    Args:
        state: Has the changes.
        kind: The kind.
        whys: Only those for these reasons; all if empty.
        skips_damaged: Whether to leave those that cannot be read to a later call.

    Raises:
        RecordUnreadable: One of them cannot be read.
    """
    for uri in _unfinished(state, whys or kind.whys()):
        try:
            change = kind.find(state.store, uri)
        except RecordUnreadable:
            if skips_damaged:
                continue
            raise
        if change is not None:  # else another process finished it
            yield change


def count_unfinished(state: State, whys: Collection[Why]) -> int:
    """How many intentions there are for some reasons, by a listing alone."""
    return sum(1 for _ in _unfinished(state, whys))


def _unfinished(state: State, whys: Collection[Why]) -> Iterator[str]:
    folder, wanted = state.layout.changing_folder, set(whys)
    uris = (info.uri for info in state.store.list(folder))
    return (uri for uri in uris if uri.removeprefix(folder).partition("~")[0] in wanted)


def changes_about(state: State, kind: type[L], about: str, why: Why) -> Iterator[L]:
    """The changes for a reason that are about a date or a manifest.

    Raises:
        RecordUnreadable: One of them cannot be read.
    """
    found = map_ordered(lambda uri: kind.find(state.store, uri), places_about(state, about, why))
    return (each for each in found if each is not None)


def places_about(state: State, about: str, why: Why) -> Iterator[str]:
    """The places of the changes for a reason that are about a date or a manifest."""
    found = state.store.list(f"{state.layout.changes_folder(why)}{about}/")
    return (info.uri for info in found if info.uri.endswith(".json"))


def changed_dates(state: State, why: Why) -> Iterator[tuple[str, str, datetime]]:
    """The date, the id and the time of each change for a reason that is about dates, by a listing alone."""
    folder = state.layout.changes_folder(why)
    for info in state.store.list(folder):
        date, _, name = info.uri.removeprefix(folder).partition("/")
        if is_date(date) and name.endswith(".json"):
            yield date, name.removesuffix(".json"), info.modified_at


def find_merge(state: State, merge_id: str) -> Merge | None:
    """A merge; None if it is not on record."""
    return Merge.find(state.store, state.layout.change(Why.MERGED, "", merge_id))


def merged_files(state: State, uris: Iterable[str], *, skips_damaged: bool = False) -> dict[str, MergedFile]:
    """Those of some files that are merged files on record, by their names.

    Args:
        state: Has the changes.
        uris: The files.
        skips_damaged: Whether a record that cannot be read counts as none.
    """

    def read(merge_id: str) -> Merge | None:
        try:
            return find_merge(state, merge_id)
        except RecordUnreadable:
            if skips_damaged:
                return None
            raise

    merged = {uri: merge_id for uri in uris if (merge_id := state.layout.merge_of(uri))}
    found = dict[str, MergedFile]()
    for merge in map_ordered(read, dict.fromkeys(merged.values())):
        found.update({each.uri: each for each in merge.files if each.uri in merged} if merge else {})
    return found


def merge_of(state: State, merge_id: str, base: int, files: list[MergedFile]) -> Merge:
    """The merge of some files, whose id no other one has; see `Merge`."""
    return Merge(id=merge_id, base=base, files=files, run_id=state.ledger.run_id, decided_at=state.clock.now())


def release(state: State, file: MergedFile) -> None:
    """Record that the parts of a merged file may be gone from now on, and are to be removed."""
    name, now = _released_id(file.uri), state.clock.now()
    change = Release(about=file.date, id=name, file=file, run_id=state.ledger.run_id, decided_at=now)
    begin_change(state, change)
    state.ledger.decide(change)


def is_released(state: State, date: str, uri: str) -> bool:
    """Whether the parts of a merged file of a date may be gone."""
    return state.store.stat(state.layout.change(Why.RELEASED, date, _released_id(uri))) is not None


def forget_release(state: State, file: MergedFile) -> None:
    """Forget a merged file that is gone itself: nothing is found in it any more."""
    places = (state.layout.changing, state.layout.change)
    state.store.delete([place(Why.RELEASED, file.date, _released_id(file.uri)) for place in places])


def finish_release(state: State, file: MergedFile) -> None:
    """Record that no part of a merged file is left to be removed."""
    state.store.delete([state.layout.changing(Why.RELEASED, file.date, _released_id(file.uri))])


def _released_id(uri: str) -> str:
    return base_name(uri).partition(".")[0]


def give_up(state: State, manifest_id: str, uri: str, how: How, reason: str, *, by: str) -> GivenUp:
    """Put on record that a quarantined input is given up, beside those of other inputs of its manifest.

    Returns:
        The change as it was decided here; one that was given up in the same way before stays as it was.
    """
    change = GivenUp(
        about=manifest_id,
        id=digest(f"{how} {uri}".encode())[:32],
        input=uri,
        how=how,
        reason=reason,
        by=by,
        run_id=state.ledger.run_id,
        decided_at=state.clock.now(),
    )
    state.ledger.decide(change)
    return change

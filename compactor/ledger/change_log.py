"""The log of changes to finished manifests, recorded by `Ledger.decide`. Read where a file is missing.

A deleting change starts with an intention, which stays until everything is deleted, so that a later call can finish it.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial
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
from compactor.core.layout import base_name, digest, is_date
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State

L = TypeVar("L", bound=LaterChange)


def begin_change(state: State, change: LaterChange) -> None:
    """Record the intention of a change, so that the next call carries it out if this one dies."""
    state.store.create(state.layout.changing(change.why, change.about, change.id), change.to_json())


def end_change(state: State, change: LaterChange) -> None:
    """Delete the intention: the change has fully taken effect."""
    state.store.delete([state.layout.changing(change.why, change.about, change.id)])


def unfinished(state: State, kind: type[L], whys: Collection[Why] = (), *, skips_damaged: bool = False) -> Iterator[L]:
    """The intentions of changes of a kind.

    Args:
        state: Source of the changes.
        kind: The kind.
        whys: Only those with these reasons; all if empty.
        skips_damaged: Whether to leave unreadable ones to a later call.

    Raises:
        RecordUnreadable: One of them cannot be read.
    """
    find = kind.find_readable if skips_damaged else kind.find
    found = (find(state.store, uri) for uri in _unfinished(state, whys or kind.whys()))
    return (change for change in found if change is not None)  # else another process finished it


def count_unfinished(state: State, whys: Collection[Why]) -> int:
    """The number of intentions with given reasons, from a listing."""
    return sum(1 for _ in _unfinished(state, whys))


def _unfinished(state: State, whys: Collection[Why]) -> Iterator[str]:
    folder, wanted = state.layout.changing_folder, set(whys)
    uris = (info.uri for info in state.store.list(folder))
    return (uri for uri in uris if uri.removeprefix(folder).partition("~")[0] in wanted)


def changes_about(state: State, kind: type[L], about: str, why: Why) -> Iterator[L]:
    """The changes for one reason that concern a date or a manifest.

    Raises:
        RecordUnreadable: One of them cannot be read.
    """
    found = map_ordered(lambda uri: kind.find(state.store, uri), places_about(state, about, why))
    return (each for each in found if each is not None)


def places_about(state: State, about: str, why: Why) -> Iterator[str]:
    """The places of the changes for one reason that concern a date or a manifest."""
    found = state.store.list(f"{state.layout.changes_folder(why)}{about}/")
    return (info.uri for info in found if info.uri.endswith(".json"))


def changed_dates(state: State, why: Why) -> Iterator[tuple[str, str, datetime]]:
    """The date, id and time of each change for a reason that concerns dates, from a listing."""
    folder = state.layout.changes_folder(why)
    for info in state.store.list(folder):
        date, _, name = info.uri.removeprefix(folder).partition("/")
        if is_date(date) and name.endswith(".json"):
            yield date, name.removesuffix(".json"), info.modified_at


def find_merge(state: State, merge_id: str, *, skips_damaged: bool = False) -> Merge | None:
    """Read a merge; None if it is not on record, and with `skips_damaged` also if its record is unreadable."""
    find = Merge.find_readable if skips_damaged else Merge.find
    return find(state.store, state.layout.change(Why.MERGED, "", merge_id))


def merged_files(state: State, uris: Iterable[str], *, skips_damaged: bool = False) -> dict[str, MergedFile]:
    """The given files that are recorded merged files, by name.

    Args:
        state: Source of the changes.
        uris: The files.
        skips_damaged: Whether to treat an unreadable record as missing.
    """
    merged = {uri: merge_id for uri in uris if (merge_id := state.layout.merge_of(uri))}
    found = dict[str, MergedFile]()
    find = partial(find_merge, state, skips_damaged=skips_damaged)
    for merge in map_ordered(find, dict.fromkeys(merged.values())):
        found.update({each.uri: each for each in merge.files if each.uri in merged} if merge else {})
    return found


def merge_of(state: State, merge_id: str, base: int, files: list[MergedFile]) -> Merge:
    """A merge of some files, with a unique id; see `Merge`."""
    return Merge(id=merge_id, base=base, files=files, run_id=state.ledger.run_id, decided_at=state.clock.now())


def release(state: State, file: MergedFile) -> None:
    """Record that the parts of a merged file are to be removed and may be missing from now on."""
    name, now = _released_id(file.uri), state.clock.now()
    change = Release(about=file.date, id=name, file=file, run_id=state.ledger.run_id, decided_at=now)
    begin_change(state, change)
    state.ledger.decide(change)


def is_released(state: State, date: str, uri: str) -> bool:
    """Whether the parts of a date's merged file may be missing."""
    return state.store.stat(state.layout.change(Why.RELEASED, date, _released_id(uri))) is not None


def forget_release(state: State, file: MergedFile) -> None:
    """Delete the record of a merged file that no longer exists."""
    places = (state.layout.changing, state.layout.change)
    state.store.delete([place(Why.RELEASED, file.date, _released_id(file.uri)) for place in places])


def finish_release(state: State, file: MergedFile) -> None:
    """Record that all parts of a merged file were removed."""
    state.store.delete([state.layout.changing(Why.RELEASED, file.date, _released_id(file.uri))])


def _released_id(uri: str) -> str:
    return base_name(uri).partition(".")[0]


def give_up(
    state: State, manifest_id: str, uri: str, how: How, reason: str, *, by: str, etag: str = "", generation: int = 0
) -> GivenUp:
    """Record that a dead letter, an input or an output is given up, in addition to others of its manifest.

    See `GivenUp` for the arguments.

    Returns:
        The decided change; an earlier one with the same decision stays unchanged.
    """
    change = GivenUp(
        about=manifest_id,
        id=digest(f"{how} {generation} {etag} {uri}".encode())[:32],
        input=uri,
        etag=etag,
        generation=generation,
        how=how,
        reason=reason,
        by=by,
        run_id=state.ledger.run_id,
        decided_at=state.clock.now(),
    )
    state.ledger.decide(change)
    return change

"""Finds files in the folders of output and rejects that no commit names.

A job commits before it publishes. So it is safe to list first and to read the commits then.

Files in place are there before their manifest is decided. Until then, and if another attempt is decided, no table lists
them: an orphan is no row too many, unless readers list the folders because there is no table.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, takewhile

from compactor.core.documents.records import Commit
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout, canonical, folder, is_data
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.ledger.state import State
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.ops.verify.report import Discrepancy, Orphan

Owner = ManifestKey | None
OwnerOf = Callable[[str], Owner]

Surplus = Discrepancy | Orphan


def surplus_everywhere(state: State, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of all dates, even of dates without any record; see `InPlaceFiles` for those of a table."""
    in_place = InPlaceFiles(state) if has_table else None
    store, layout = state.store, state.layout
    # Outside the folders of dates there may be other tables.
    outputs = (info for info in store.list(folder(layout.output)) if layout.output_owner(info.uri))
    yield from _surplus(state, outputs, layout.output_owner, in_place)
    yield from _surplus(state, store.list(layout.rejects_folder), layout.rejects_owner, in_place)


def surplus_of_date(state: State, date: str, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of one date."""
    in_place = InPlaceFiles(state) if has_table else None
    for place, owner_of in _places(state.layout, date):
        yield from _surplus(state, state.store.list(place), owner_of, in_place)


def surplus_of_manifest(state: State, key: ManifestKey, *, has_table: bool = False) -> Iterator[Surplus]:
    """Search the folders of a manifest's date for files that are named after it, also in partitions if it has some."""
    in_place = InPlaceFiles(state) if has_table else None
    if in_place is not None:
        listed = state.store.list(state.layout.in_place_of(key))
        yield from _surplus(state, listed, state.layout.output_owner, in_place)
    for place, owner_of in _places(state.layout, key.date):
        named_after = _beginning_with(state.store, place, f"{key.id}-")
        if owner_of == state.layout.output_owner and _has_partitions(state, key):
            named_after = state.store.list(place)
        is_other = state.layout.in_place_attempt if in_place is not None else lambda _: None
        found = [info for info in named_after if owner_of(info.uri) == key and not is_other(info.uri)]
        yield from _surplus(state, found, owner_of, in_place)


def _has_partitions(state: State, key: ManifestKey) -> bool:
    """Whether a manifest has partitions, or an earlier generation of it had some."""
    try:
        newest = state.ledger.outcome(key)
        earlier = (state.ledger.outcome_of(key, number) for number in range(1, newest.generation))
        return any(isinstance(each, Commit) and each.partition_by for each in (newest, *earlier))
    except (ObjectNotFound, RecordUnreadable):
        return False


def _beginning_with(store: ObjectStore, place: str, beginning: str) -> Iterator[ObjectInfo]:
    start = place + beginning
    return takewhile(lambda info: info.uri.startswith(start), store.list(place, start_after=start))


def _places(layout: Layout, date: str) -> list[tuple[str, OwnerOf]]:
    return [
        (layout.output_folder_of(date), layout.output_owner),
        (layout.rejects_folder_of(date), layout.rejects_owner),
    ]


def _surplus(
    state: State, listed: Iterable[ObjectInfo], owner_of: OwnerOf, in_place: InPlaceFiles | None
) -> Iterator[Surplus]:
    data = (info for info in listed if is_data(info.uri))
    groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
    for found in map_ordered(partial(_surplus_of, state, in_place), groups):
        yield from found


def _surplus_of(state: State, in_place: InPlaceFiles | None, group: tuple[Owner, list[ObjectInfo]]) -> list[Surplus]:
    owner, infos = group
    try:
        outcome = state.ledger.outcome(owner) if owner and owner.id else None
    except ObjectNotFound:
        outcome = None
    except RecordUnreadable:
        return []  # the record itself is a discrepancy
    files = (*outcome.outputs, *outcome.rejects) if isinstance(outcome, Commit) else ()
    named = {canonical(file.final) for file in files}
    if isinstance(outcome, Commit) and outcome.rebuild and not state.ledger.is_done(outcome.key, outcome.generation):
        named |= set(map(canonical, outcome.rebuild.removes))  # they go before the rebuilt files come
    manifest_id = owner.id if owner and outcome else ""
    found: list[Surplus] = []
    for info in infos:
        if canonical(info.uri) in named:
            continue
        fate = in_place.fate(info.uri) if in_place is not None else Fate.UNKNOWN
        if fate is Fate.ORPHANED:
            found.append(Orphan(info.uri, info.size_bytes))
        elif fate not in {Fate.UNDECIDED, Fate.UNREADABLE}:  # the record itself is a discrepancy
            expected = "no such file: no commit names it"
            found.append(Discrepancy(manifest_id, info.uri, expected, f"{info.size_bytes} bytes"))
    return found

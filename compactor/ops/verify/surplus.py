"""Finds files in the folders of output and rejects that no commit names."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import canonical, folder, is_data
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.state import State
from compactor.ops.verify.report import Discrepancy

Owner = ManifestKey | None
OwnerOf = Callable[[str], Owner]
_Group = tuple[Owner, list[ObjectInfo]]


@dataclass(frozen=True, kw_only=True)
class SurplusFinder:
    """Finds files in the folders of output and rejects that no commit names.

    A job commits before it publishes. So it is safe to list first and to read the commits then.
    """

    state: State

    def everywhere(self) -> Iterator[Discrepancy]:
        """Search the folders of all dates, even of dates without any record."""
        store, layout = self.state.store, self.state.layout
        # Outside the folders of dates there may be other tables.
        outputs = (info for info in store.list(folder(layout.output)) if layout.output_owner(info.uri))
        yield from self._surplus(outputs, layout.output_owner)
        yield from self._surplus(store.list(layout.rejects_folder), layout.rejects_owner)

    def of_date(self, date: str) -> Iterator[Discrepancy]:
        """Search the folders of one date."""
        for place, owner_of in self._places(date):
            yield from self._surplus(self.state.store.list(place), owner_of)

    def of_manifest(self, key: ManifestKey) -> Iterator[Discrepancy]:
        """Search the folders of a manifest's date for files that are named after it."""
        for place, owner_of in self._places(key.date):
            named_after = _beginning_with(self.state.store, place, f"{key.id}-")
            yield from self._surplus([info for info in named_after if owner_of(info.uri) == key], owner_of)

    def _places(self, date: str) -> list[tuple[str, OwnerOf]]:
        layout = self.state.layout
        return [
            (layout.output_folder_of(date), layout.output_owner),
            (layout.rejects_folder_of(date), layout.rejects_owner),
        ]

    def _surplus(self, listed: Iterable[ObjectInfo], owner_of: OwnerOf) -> Iterator[Discrepancy]:
        data = (info for info in listed if is_data(info.uri))
        groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
        for found in map_ordered(self._surplus_of, groups):
            yield from found

    def _surplus_of(self, group: _Group) -> list[Discrepancy]:
        owner, infos = group
        try:
            outcome = self.state.ledger.outcome(owner) if owner and owner.id else None
        except ObjectNotFound:
            outcome = None
        except RecordUnreadable:
            return []  # the record itself is a discrepancy
        named = _named(outcome)
        return [
            Discrepancy(
                owner.id if owner and outcome else "",
                info.uri,
                "no such file: no commit names it",
                f"{info.size_bytes} bytes",
            )
            for info in infos
            if canonical(info.uri) not in named
        ]


def _beginning_with(store: ObjectStore, place: str, beginning: str) -> Iterator[ObjectInfo]:
    start = place + beginning
    return takewhile(lambda info: info.uri.startswith(start), store.list(place, start_after=start))


def _named(outcome: Commit | DeadLetter | None) -> frozenset[str]:
    files = (*outcome.outputs, *outcome.rejects) if isinstance(outcome, Commit) else ()
    return frozenset(canonical(file.final) for file in files)

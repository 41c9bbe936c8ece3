"""Finds files in the folders of output and rejects that no commit names."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout, canonical, folder, is_data
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.ledger import Ledger
from compactor.ops.verify.report import Discrepancy

Owner = ManifestKey | None
_Group = tuple[Owner, list[ObjectInfo]]


@dataclass(frozen=True, kw_only=True)
class SurplusFinder:
    """Finds files in the folders of output and rejects that no commit names.

    A job commits before it publishes. So it is safe to list first and to read the commits then.
    """

    store: ObjectStore
    layout: Layout
    ledger: Ledger

    def everywhere(self) -> Iterator[Discrepancy]:
        """Search the folders of all dates, even of dates without any record."""
        outputs = self.store.list(folder(self.layout.output))
        # Outside the folders of dates there may be other tables.
        yield from self._surplus(
            (info for info in outputs if self.layout.output_owner(info.uri)), self.layout.output_owner
        )
        yield from self._surplus(self.store.list(self.layout.rejects_folder), self.layout.rejects_owner)

    def of_date(self, date: str) -> Iterator[Discrepancy]:
        """Search the folders of one date."""
        yield from self._surplus(self.store.list(self.layout.output_folder_of(date)), self.layout.output_owner)
        yield from self._surplus(self.store.list(self.layout.rejects_folder_of(date)), self.layout.rejects_owner)

    def of_manifest(self, key: ManifestKey) -> Iterator[Discrepancy]:
        """Search the folders of a manifest's date for files that are named after it."""
        for place, owner_of in (
            (self.layout.output_folder_of(key.date), self.layout.output_owner),
            (self.layout.rejects_folder_of(key.date), self.layout.rejects_owner),
        ):
            named_after = _beginning_with(self.store, place, f"{key.id}-")
            yield from self._surplus([info for info in named_after if owner_of(info.uri) == key], owner_of)

    def _surplus(self, listed: Iterable[ObjectInfo], owner_of: Callable[[str], Owner]) -> Iterator[Discrepancy]:
        data = (info for info in listed if is_data(info.uri))
        groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
        for found in map_ordered(self._surplus_of, groups):
            yield from found

    def _surplus_of(self, group: _Group) -> list[Discrepancy]:
        owner, infos = group
        try:
            outcome = self.ledger.outcome(owner) if owner and owner.id else None
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

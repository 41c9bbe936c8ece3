"""Finds files in the folders of output and rejects that no commit names."""

from collections.abc import Callable, Iterable, Iterator
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


class SurplusFinder:
    """Looks for files that are one too many.

    What is there when a folder is listed was named before by a commit, so a job that goes on raises no false alarm.

    Args:
        store: Where the files are.
        layout: Tells by a file's name whose it is.
        ledger: Tells what that manifest's commit names.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger

    def everywhere(self) -> Iterator[Discrepancy]:
        """Look into the folders of all days, also of days that the ledger knows nothing of."""
        outputs = self._store.list(folder(self._layout.output))
        # Outside the folders of days there may be anything.
        yield from self._surplus(
            (info for info in outputs if self._layout.output_owner(info.uri)), self._layout.output_owner
        )
        yield from self._surplus(self._store.list(self._layout.rejects_folder), self._layout.rejects_owner)

    def of_date(self, date: str) -> Iterator[Discrepancy]:
        """Look into the folders of one day."""
        yield from self._surplus(self._store.list(self._layout.output_folder_of(date)), self._layout.output_owner)
        yield from self._surplus(self._store.list(self._layout.rejects_folder_of(date)), self._layout.rejects_owner)

    def of_manifest(self, key: ManifestKey) -> Iterator[Discrepancy]:
        """Look at the files that are called like those of one manifest, in the folders of its day."""
        for place, owner_of in (
            (self._layout.output_folder_of(key.date), self._layout.output_owner),
            (self._layout.rejects_folder_of(key.date), self._layout.rejects_owner),
        ):
            called_alike = _beginning_with(self._store, place, f"{key.id}-")
            yield from self._surplus([info for info in called_alike if owner_of(info.uri) == key], owner_of)

    def _surplus(self, listed: Iterable[ObjectInfo], owner_of: Callable[[str], Owner]) -> Iterator[Discrepancy]:
        data = (info for info in listed if is_data(info.uri))
        groups = ((owner, list(infos)) for owner, infos in groupby(data, key=lambda info: owner_of(info.uri)))
        for found in map_ordered(self._surplus_of, groups):
            yield from found

    def _surplus_of(self, group: _Group) -> list[Discrepancy]:
        owner, infos = group
        try:
            outcome = self._ledger.outcome(owner) if owner and owner.id else None
        except ObjectNotFound:
            outcome = None
        except RecordUnreadable:
            return []  # which is a discrepancy of its own, and all that can be said
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

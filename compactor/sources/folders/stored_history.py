"""Remembers in the state which manifests of closed dates name which files, for sources on S3."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compactor.core.layout import Layout, ManifestKey
from compactor.core.ports import ObjectStore
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.run_levels import Row, RunLevels, digest_of, number_of, place_and_member
from compactor.sources.file_search import Naming
from compactor.sources.folders.history import Known, Shorter


@dataclass(slots=True)
class StoredSummarisedFiles:
    """A `compactor.sources.folders.history.SummarisedFiles`. It finds files only by name.

    An index row has the summary that contains a manifest, and the manifest's number there.
    """

    store: ObjectStore
    layout: Layout
    _index: RunLevels = field(init=False)
    _digests: "array[int]" = field(default_factory=lambda: array("Q"), init=False)
    _owners: "array[int]" = field(default_factory=lambda: array("I"), init=False)  # of each digest, by next number
    _numbers: dict[str, int] = field(default_factory=dict, init=False)  # of the added manifests

    def __post_init__(self) -> None:
        self._index = RunLevels(self.store, self.layout.closed_names)

    def known(self) -> Known | None:
        return Known(self._index.upto, self._index.note)

    def forget(self) -> None:
        self._index.forget()

    def add(self, namings: Sequence[Naming]) -> bool:
        for each in namings:
            self._digests.append(digest_of(each.uri))
            self._owners.append(self._numbers.setdefault(each.manifest_id, len(self._numbers)))
        return True

    def reach(self, known: Known) -> None:
        """Write what was added since the last call as the next summary's entry."""
        if known.place == self._index.upto + 1:
            self._index.add(known.place, self._rows(known.place), known.fingerprint)
        self._digests, self._owners, self._numbers = array("Q"), array("I"), {}

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        """The manifests that may name one of these files; None if versions are given."""
        if any(True for _ in versions):
            return None
        found: dict[int, set[int]] = {}
        for _, number in self._index.find(sorted(map(digest_of, uris))):
            place, member = place_and_member(number)
            found.setdefault(place, set()).add(member)
        return {key for place, members in found.items() for key in self._keys(place, members)}

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        """Nothing: files on S3 are not compared with shorter versions.

        Raises:
            LookupError: A local file is to be compared.
        """
        if size_bytes:
            raise LookupError(size_bytes)
        return iter(())

    def _rows(self, place: int) -> Iterator[Row]:
        members = {each.id: number for number, each in enumerate(ClosedDates(self.store, self.layout).members(place))}
        numbers = [number_of(place, members[manifest_id]) for manifest_id in self._numbers]
        for at in sorted(range(len(self._digests)), key=self._digests.__getitem__):
            yield self._digests[at], numbers[self._owners[at]]

    def _keys(self, place: int, members: Iterable[int]) -> Iterator[ManifestKey]:
        dates = ClosedDates(self.store, self.layout)
        date, found = dates.read(place).date, dates.members(place)
        yield from (ManifestKey(date, found[each].id) for each in members)

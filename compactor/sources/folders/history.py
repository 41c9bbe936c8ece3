"""Searches everything ever planned for files, without rereading the records of closed dates.

The first search after a date was closed reads its records once more, and remembers which manifest names which file.
Later searches read the manifests in no summary, and those of closed dates that name a wanted file. The result is the
same as from reading all records.
"""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

from compactor.core.documents.closed_dates import ClosedTotals
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import Layout, ManifestKey, ledger_order
from compactor.core.ports import ObjectStore
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.run_levels import Row, RunLevels, digest_of, number_of, place_and_member
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.sources.file_search import FileSearch, Naming


class Known(NamedTuple):
    """How much of the log of closed dates is remembered.

    Attributes:
        place: The place of the last summary whose files are remembered; 0 if there is none.
        fingerprint: That summary's fingerprint, which shows whether the log was replaced.
    """

    place: int
    fingerprint: str


class Shorter(NamedTuple):
    """A version with rows whose bytes may be the beginning of a longer file."""

    uri: str
    etag: str
    key: ManifestKey


class SummarisedFiles(Protocol):
    """Remembers, place by place in the log, which manifests name which files. A cache that may be lost."""

    def known(self) -> Known | None:
        """How far it reaches; None if it is unusable."""

    def forget(self) -> None:
        """Clear the cache."""

    def add(self, namings: Sequence[Naming]) -> bool:
        """Remember files, including ones already remembered; False on failure."""

    def reach(self, known: Known) -> None:
        """Declare that all files of a summary were added. No effect if the previous one is missing."""

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        """The manifests that name one of these files or versions; None if it is unusable."""

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        """The versions up to this length that were not passed over; see `SeenFiles.pass_over`.

        Raises:
            LookupError: The cache is unusable.
        """


@dataclass(slots=True)
class StoredSummarisedFiles:
    """Remembers them in the state, for sources on S3. It finds files only by name.

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


_FILES_AT_ONCE = 10_000


class _Everything:
    """Contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySearch:
    """Searches the manifests of all dates.

    Attributes:
        files: Remembers the files of closed dates; None for no cache.
        may_learn: Whether to add to `files`.
    """

    search: FileSearch
    files: SummarisedFiles | None
    may_learn: bool = True

    def everywhere(
        self, uris: Collection[str], *, size_bytes: int, is_wanted: Callable[[Shorter], bool]
    ) -> Iterator[Naming]:
        """Yield all manifests, including waiting ones, that name one of the files or versions in the search.

        Args:
            uris: The files, canonical.
            size_bytes: Versions up to this length are candidates, too, whatever their names.
            is_wanted: Selects among those; a refused version may still be yielded.
        """
        # Prefix first: a manifest that a job accepts meanwhile moves from the prefix to the records.
        yield from self.search.waiting(uris)
        keys = self._keys(self.files, uris, size_bytes, is_wanted) if self.files is not None else None
        if keys is None:
            yield from self.search.on_record(uris)
        else:
            yield from self.search.of_manifests(keys, uris)

    def _keys(
        self, files: SummarisedFiles, uris: Collection[str], size_bytes: int, is_wanted: Callable[[Shorter], bool]
    ) -> list[ManifestKey] | None:
        """The manifests to read; None for all."""
        found = unsummarised_if_readable(self.search.state) if files.known() is not None else None
        if found is None:
            return None
        try:
            unknown = self._learn(files, found.totals)
            shorter = {each.key for each in files.shorter(size_bytes) if is_wanted(each)}
            named = files.naming(uris, self.search.versions)
        except (LookupError, RecordUnreadable):  # a search of all records finds the damaged one again, and reports it
            return None
        if named is None or unknown is None:
            return None
        return sorted({*found.keys, *unknown, *shorter, *named}, key=ledger_order)

    def _learn(self, files: SummarisedFiles, totals: ClosedTotals) -> list[ManifestKey] | None:
        """Remember the files of new summaries; return the members of the summaries that are not remembered."""
        dates = ClosedDates(self.search.state.store, self.search.state.layout)
        known = files.known()
        if known is not None and known.place and not _is_of(dates, totals, known):
            if not self.may_learn:
                return None
            files.forget()
            known = files.known()
        if known is None:
            return None
        days = {place: date for date, span in totals.dates.items() for place in span.places}
        unknown: list[ManifestKey] = []
        for place in range(known.place + 1, totals.upto + 1):
            members = [ManifestKey(days[place], each.id) for each in dates.members(place)]
            if not self.may_learn:
                unknown += members
                continue
            named = self.search.of_manifests(members, _Everything())
            while some := list(islice(named, _FILES_AT_ONCE)):
                if not files.add(some):
                    return None
            files.reach(known_at(dates, place))
        reached = files.known()
        is_complete = reached is not None and (not self.may_learn or reached.place == totals.upto)
        return unknown if is_complete else None


def known_at(dates: ClosedDates, place: int) -> Known:
    """The state of knowledge once the files of a summary and of all earlier ones are remembered."""
    return Known(place, dates.read(place).fingerprint)


def _is_of(dates: ClosedDates, totals: ClosedTotals, known: Known) -> bool:
    return known.place <= totals.upto and known_at(dates, known.place) == known

"""Searches everything that was ever planned for files, without reading the records of closed dates again.

The first search after a date was closed reads its records once more, and remembers which manifest names which file.
Later searches read the manifests that are in no summary, and those of closed dates that name a wanted file. They find
what a reading of all records finds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from compactor.core.documents.closed_dates import ClosedTotals
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.sources.file_search import FileSearch, Naming


class Known(NamedTuple):
    """How far the log of closed dates is remembered.

    Attributes:
        place: The place of the last summary whose files are remembered; 0 if there is none.
        fingerprint: That of the summary, which shows whether another log has taken its place.
    """

    place: int
    fingerprint: str


class Shorter(NamedTuple):
    """A version with rows whose bytes another file may begin with."""

    uri: str
    etag: str
    key: ManifestKey


class SummarisedFiles(Protocol):
    """Remembers, place by place in the log, which manifests name which files. A cache, which may be lost."""

    def known(self) -> Known | None:
        """How far it reaches; None if it cannot be used."""

    def forget(self) -> None:
        """Forget everything."""

    def add(self, namings: Sequence[Naming]) -> bool:
        """Remember files, also those that are remembered already; False if that fails."""

    def reach(self, known: Known) -> None:
        """Declare that all files of a summary were added. No effect if the one before it is forgotten."""

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        """The manifests that name one of these files, or one of these versions; None if it cannot be used."""

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        """The versions of at most this length that were not passed over; see `SeenFiles.pass_over`.

        Raises:
            LookupError: It cannot be used.
        """


_FILES_AT_ONCE = 10_000


class _Everything:
    """Has each name."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySearch:
    """Searches manifests of all dates.

    Attributes:
        files: Remembers those of closed dates; None where nothing does.
        may_learn: Whether `files` may learn more.
    """

    search: FileSearch
    files: SummarisedFiles | None
    may_learn: bool = True

    def everywhere(
        self, uris: Collection[str], *, size_bytes: int, is_wanted: Callable[[Shorter], bool]
    ) -> Iterator[Naming]:
        """Yield all manifests, waiting ones included, that name one of the files or versions of the search.

        Args:
            uris: The files, canonical.
            size_bytes: Versions up to this length are wanted, too, whatever their names.
            is_wanted: Decides which of those; a version that it refuses may still be yielded.
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
        except (LookupError, RecordUnreadable):  # a search of all records meets the damaged one again, and reports it
            return None
        if named is None or unknown is None:
            return None
        return sorted({*found.keys, *unknown, *shorter, *named}, key=lambda key: f"{key.date}/{key.id}/")

    def _learn(self, files: SummarisedFiles, totals: ClosedTotals) -> list[ManifestKey] | None:
        """Remember the files of new summaries; returns the members of those that are not remembered."""
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
    """What is known once the files of a summary and of all earlier ones are remembered."""
    return Known(place, dates.read(place).fingerprint)


def _is_of(dates: ClosedDates, totals: ClosedTotals, known: Known) -> bool:
    return known.place <= totals.upto and known_at(dates, known.place) == known

"""Finds which files manifests name already, each manifest read once however many dates there are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.dates import ARRIVAL, possible_dates
from compactor.core.layout import canonical
from compactor.ledger.state import State
from compactor.manifests.file_search import FileSearch, Naming
from compactor.manifests.spilled.spill import FileSpill

FRESH_SECONDS = 300.0
"""How long a search of the watched prefix and of the records of a date counts; then new manifests are searched for."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_AT_ONCE = 10_000


@dataclass(slots=True)
class FoundFiles:
    """Files that manifests name, by canonical URI.

    Attributes:
        covered: In a manifest at this version, with any result.
        with_rows: Of these, what has rows or still may.
        replaced: In a manifest only with another version, which has rows or still may.
    """

    covered: set[str] = field(default_factory=set)
    with_rows: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class NamedBefore:
    """Finds files in manifests that have no claims: those of others, and those whose claims expired.

    Attributes:
        allowed_prefixes: Folders that input may be in.
        spill: All files to plan, and what is found of them.
    """

    state: State
    allowed_prefixes: Sequence[str]
    spill: FileSpill
    _passed: set[str] = field(default_factory=set, init=False)
    _searched: set[str] = field(default_factory=set, init=False)
    _looked_at: datetime | None = field(default=None, init=False)

    def note_own(self, manifest_id: str) -> None:
        """Pass over a manifest that this planner wrote: its files are claimed."""
        self._passed |= {manifest_id, self.state.layout.manifest(manifest_id)}

    def searched_at(self) -> datetime | None:
        """When the search was made that counts now; None if a new one is due."""
        age = None if self._looked_at is None else self.state.clock.now() - self._looked_at
        # guard: manifests that arrive while a back-fill runs are looked for
        return self._looked_at if age is not None and age.total_seconds() <= FRESH_SECONDS else None

    def search(self, dates: set[str]) -> None:
        """Search the watched prefix and the records of dates for all files, as far as no search of them counts."""
        search = FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes, passed=self._passed)
        if self.searched_at() is None:
            self._looked_at = self.state.clock.now()
            self._searched.clear()
            # Prefix first: a manifest that a job accepts meanwhile moves from the prefix to the records.
            self._note(search.waiting(self.spill))
        self._note(search.on_dates(dict.fromkeys(sorted(dates - self._searched), self.spill)))
        self._searched |= dates

    def found(self, files: Sequence[ManifestFile]) -> "FoundFiles":
        """What the searches so far found of some files."""
        by_uri = {canonical(file.uri): file for file in files}
        found = FoundFiles()
        for naming in self.spill.noted(list(by_uri)):
            has_rows = naming.may_have(naming.etag)
            if naming.has_had(by_uri[naming.uri].etag):
                found.covered.add(naming.uri)
                found.with_rows |= {naming.uri} if has_rows else set()
            elif has_rows:
                found.replaced.add(naming.uri)
        found.replaced -= found.covered
        return found

    def _note(self, found: Iterator[Naming]) -> None:
        # Not one by one: the threads that search ask the spill, which notes meanwhile.
        while some := list(islice(found, _AT_ONCE)):
            self.spill.note(some)


def dates_to_search(date: str, files: Iterable[ManifestFile]) -> set[str]:
    """The dates of manifests that may name some files of a date; see `compactor.core.inputs.dates.possible_dates`."""
    found, arrivals = {date}, set()
    for file in files:
        arrived_at = file.event_time or _EPOCH
        arrivals.add(arrived_at.astimezone(UTC).date())
        # guard: a plan looks under the date in a file's name, which it had before the settings were changed
        if file.dated_by == ARRIVAL:  # its name may give a date that does not count by now
            found |= possible_dates(file.uri, arrived_at)
    # guard: a plan looks under the day of a file's arrival, which it had before the settings were changed
    return found | {each.isoformat() for each in arrivals}

"""The files of a listing or an inventory that are in no manifest, date by date.

They are sorted by date on disk, so that memory does not grow with their number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.dates import ARRIVAL, date_of_file, possible_dates
from compactor.core.layout import canonical
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.sources.candidates import Candidate, Group
from compactor.sources.claiming import Claimer, claim_key, state_of
from compactor.sources.file_search import FileSearch, Naming
from compactor.sources.plan import Plan, Written
from compactor.sources.planner import PAGE_FILES, Source
from compactor.sources.spill import FileSpill, SpilledFile

FRESH_SECONDS = 300.0
"""How long a search of the watched prefix and of a date's records is valid."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_NAMINGS_AT_ONCE = 10_000
_PROBES = 3


@dataclass(slots=True, kw_only=True)
class Unplanned(Source):
    """Files without a claim or a manifest. A second pass has those that another planner had claimed during the first.

    Attributes:
        found: Yields the input files, and counts all others in the plan.
        spill: Sorts them, and records which manifests name them.
        may_be_gone: Whether files may have been deleted or replaced since they were found.
        page_files: How many files are in memory at once.
    """

    state: State
    claimer: Claimer
    allowed_prefixes: Sequence[str]
    found: Callable[[Plan], Iterable[SpilledFile]]
    spill: FileSpill
    may_be_gone: bool = False
    page_files: int = PAGE_FILES
    _plan: Plan = field(default_factory=Plan, init=False)
    _is_read: bool = field(default=False, init=False)
    _unread: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)
    _passed: set[str] = field(default_factory=set, init=False)
    _dates: set[str] = field(default_factory=set, init=False)
    _searched_at: datetime | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    is_listing = True

    def candidates(self, plan: Plan) -> Iterator[Candidate]:
        self._plan = plan
        if not self._is_read:
            self.spill.add(self.state.meter.each("file", self.found(plan)))
            self._is_read = True
        plan.skip("repeated", files=self.spill.sort())
        self._unread = {date: (files, size_bytes) for date, files, size_bytes in self.spill.dates()}
        with self.state.meter.work("file", sum(files for files, _ in self._unread.values())):
            for date in list(self._unread):
                self.state.meter.reached = date
                for page in self.spill.pages(self.page_files, date):
                    files_left, bytes_left = self._unread[date]
                    self._unread[date] = files_left - len(page), bytes_left - sum(each.size_bytes for each in page)
                    files = self._unclaimed(page)
                    if files:
                        self._search(_dates_to_search(date, files))
                    searched_at = self._searched_at
                    yield from (Candidate.of_file(date, file, searched_at) for file in self._unnamed(files))
                    self.state.meter.add("file", len(page))

    def unread(self) -> Sequence[tuple[int, int]]:
        return [each for each in self._unread.values() if each[0]]

    def ready(self, group: Group) -> Group:
        """The group without files that were named, deleted or replaced while being held back."""
        with self._lock:
            # While the search that checked the files is valid, a new one would find nothing more.
            if not self._is_fresh() or any(each.searched_at != self._searched_at for each in group.candidates):
                self._search(_dates_to_search(group.date, group.files))
                # guard: files planned while others were held back are not planned again
                group = group.only({claim_key(file) for file in self._unnamed(group.files)})
        if not self.may_be_gone:
            return group
        troubles = self._troubles(group.files)
        with self._lock:
            for reason in ("gone", "replaced"):
                self._plan.skip(reason, files=troubles.count(reason))
        return group.only({key for key, trouble in zip(group.keys, troubles, strict=True) if not trouble})

    def settle(self, group: Group, written: Written) -> None:
        """Keep files held by others for later. The new manifest need not be searched, as its files are claimed."""
        self._keep([file for each in group.candidates if each.key in written.claimed.held for file in each.files])
        if (manifest := written.manifest) is not None:
            with self._lock:
                self._passed |= {manifest.manifest_id, self.state.layout.manifest(manifest.manifest_id)}

    def _unclaimed(self, page: Sequence[SpilledFile]) -> list[ManifestFile]:
        """The unclaimed files of a page; counts the others."""
        files = {
            claim_key(file): file for file in (self.state.rules.with_path_columns(each.as_named()) for each in page)
        }
        claimed = self.claimer.states(list(files))
        held = self._plan.count_claimed(claimed)
        self._keep([files[key] for key in held])  # guard: what a dead planner has claimed is planned later
        return [file for key, file in files.items() if state_of(claimed, key) == "free"]

    def _keep(self, held: Sequence[ManifestFile]) -> None:
        self.spill.add(SpilledFile.of(date_of_file(file.uri, file.event_time or _EPOCH).date, file) for file in held)

    def _unnamed(self, files: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The files that no manifest covers, by the search; counts the others."""
        by_uri = {canonical(file.uri): file for file in files}
        covered, with_rows = set[str](), set[str]()
        for naming in self.spill.noted(list(by_uri)):
            if naming.has_had(by_uri[naming.uri].etag):
                covered.add(naming.uri)
                with_rows |= {naming.uri} if naming.may_have(naming.etag) else set()
        # If a manifest made no rows, the claim knows more: a redrive may have claimed the file, and released it.
        undone = {claim_key(by_uri[uri]): uri for uri in covered - with_rows}
        claimed = self.claimer.states(list(undone)) if undone else {}
        covered -= {undone[key] for key, (state, _) in claimed.items() if state == "free"}
        self._plan.planned_before += len(covered)
        # guard: a file in a manifest without claims is not planned again
        return [file for uri, file in by_uri.items() if uri not in covered]

    def _is_fresh(self) -> bool:
        now, at = self.state.clock.now(), self._searched_at
        # guard: manifests that arrive during a back-fill are searched
        return at is not None and (now - at).total_seconds() <= FRESH_SECONDS

    def _search(self, dates: set[str]) -> None:
        """Search the watched prefix and the records of dates, unless a recent search covers them."""
        search = FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes, passed=self._passed)
        if not self._is_fresh():
            self._searched_at = self.state.clock.now()
            self._dates.clear()
            # Prefix first: a manifest that a job accepts meanwhile moves from the prefix to the records.
            self._note(search.waiting(self.spill))
        self._note(search.on_dates(dict.fromkeys(sorted(dates - self._dates), self.spill)))
        self._dates |= dates

    def _note(self, found: Iterator[Naming]) -> None:
        # In batches: each note takes the spill's lock, which the searching threads need, too.
        while some := list(islice(found, _NAMINGS_AT_ONCE)):
            self.spill.note(some)

    def _troubles(self, files: Sequence[ManifestFile]) -> list[str]:
        """Why each file can no longer be read, else empty. If a sample of them is readable, all count as readable."""
        if any(map(self._trouble, files[:: max(1, len(files) // _PROBES)])):
            return list(map_ordered(self._trouble, files))
        return [""] * len(files)

    def _trouble(self, file: ManifestFile) -> str:
        info = self.state.store.stat(file.uri)
        if info is None:
            return "gone"
        return "" if info.etag == (file.etag or "") else "replaced"


def _dates_to_search(date: str, files: Iterable[ManifestFile]) -> set[str]:
    """The dates of manifests that may name some files of a date; see `possible_dates`."""
    found, arrivals = {date}, set()
    for file in files:
        arrived_at = file.event_time or _EPOCH
        arrivals.add(arrived_at.astimezone(UTC).date())
        # guard: a plan looks under the date in a file's name, which it had before the window of dates was changed
        if file.dated_by == ARRIVAL:  # the date in its name may no longer count
            found |= possible_dates(file.uri, arrived_at)
    # guard: a plan looks under the day of a file's arrival, which it had before the window of dates was changed
    return found | {each.isoformat() for each in arrivals}

"""Plans the files in sources: each version once, whatever happened to the files between two calls."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileStatus
from compactor.core.errors import RecordUnreadable
from compactor.core.inputs.dates import date_of_file
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, folder, is_s3
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.sources.candidates import SKIP_REASONS, Candidate, is_settled, skip_reason
from compactor.sources.claiming import Claimer, claim_key, state_of
from compactor.sources.file_search import FileSearch
from compactor.sources.folders.history import HistorySearch, SummarisedFiles
from compactor.sources.folders.known_files import KnownFiles, Listed, SeenFiles
from compactor.sources.folders.matching import Matches
from compactor.sources.plan import LeftOut, Plan, Replacement
from compactor.sources.planner import Planner, Source
from compactor.sources.spill import FileSpill, SpilledFile

Listing = Callable[[SourcePlace], Iterator[ObjectInfo | LeftOut]]
"""Lists the files in a source, and reports what it cannot list."""


def source_files(
    listing: Listing,
    sources: Sequence[SourcePlace],
    plan: Plan,
    *,
    excludes: Callable[[str], bool],
    with_hidden: bool = False,
) -> Iterator[ObjectInfo]:
    """Yield the input files; counts all others, and listing failures, in a plan."""

    def reason_for(source: SourcePlace, found: ObjectInfo | LeftOut) -> str:
        reason = _reason(source, found, with_hidden=with_hidden)
        return "excluded" if reason in {"", "bad_name"} and excludes(found.uri) else reason

    for number, source in enumerate(sources):
        for found in listing(source):
            if not _is_meant(source, found) or any(_is_meant(each, found) for each in sources[:number]):
                continue
            reason = reason_for(source, found)
            if not reason and isinstance(found, ObjectInfo) and found.target:
                file = replace(found, uri=found.target)
                if any(_is_meant(each, file) and not reason_for(each, file) for each in sources):
                    reason = "linked_file"
            if reason == "bad_name":
                plan.left_out.append(LeftOut(found.uri, reason, SKIP_REASONS[reason]))
            elif reason:
                plan.skip(reason, found.uri)
            elif isinstance(found, ObjectInfo):
                yield found
            else:
                plan.left_out.append(found)


def _is_meant(source: SourcePlace, found: ObjectInfo | LeftOut) -> bool:
    """Whether a source selects a file, or a folder above some of its files."""
    is_meant = source.takes if isinstance(found, ObjectInfo) else source.reaches
    return canonical(found.uri).startswith(folder(canonical(source.folder))) and is_meant(found.uri)


def _reason(source: SourcePlace, found: ObjectInfo | LeftOut, *, with_hidden: bool) -> str:
    """Why an object is skipped; empty if it is input, or needs attention."""
    is_hidden = not with_hidden and source.is_hidden(found.uri)
    if isinstance(found, ObjectInfo):
        return skip_reason(found.uri, found.size_bytes, [source.folder], is_hidden=is_hidden) or ""
    return "hidden" if is_hidden else ""


def changed_files(commits: Iterable[Commit], claimer: Claimer) -> list[LeftOut]:
    """The files of some commits that changed before they were read. Releases their claims.

    The next plan takes the version that exists by then, even if it is the one that was listed.
    """
    left_out: list[LeftOut] = []
    for commit in commits:
        changed = {file.uri: file for file in commit.files if file.status is FileStatus.CHANGED}
        accepted = claimer.state.ledger.accepted(commit.manifest_id) if changed else None
        if accepted is not None and accepted.manifest is not None:
            claimer.release_claims([claim_key(file) for file in accepted.manifest.files if file.uri in changed])
        left_out += [LeftOut(uri, "changed", f"after it was listed: {file.detail}") for uri, file in changed.items()]
    return left_out


OnReplaced = Literal["quarantine", "rebuild", "append"]
"""What to do with a file whose earlier version has rows: leave it out, rebuild the rows, or take all its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlanner:
    """Plans all files in some sources.

    Attributes:
        listing: Lists one source.
        new_spill: Creates the storage for one plan's listing.
        summarised: Remembers the files of closed dates; None for no cache.
    """

    planner: Planner
    allowed_prefixes: Sequence[str]
    listing: Listing
    sources: Sequence[SourcePlace]
    seen: SeenFiles
    new_spill: Callable[[], FileSpill]
    summarised: SummarisedFiles | None = None
    on_replaced: OnReplaced = "quarantine"
    with_hidden: bool = False

    @property
    def state(self) -> State:
        return self.planner.state

    def plan(self, *, settle_seconds: float = 0, dry_run: bool = False) -> Plan:
        """Write manifests for all files that are in none. Memory grows only with their number.

        Args:
            settle_seconds: Take only files last written at least this long ago.
            dry_run: Claim and write nothing.
        """
        with closing(self.new_spill()) as listed:
            files = _NewFiles(self, listed, settle_seconds)
            plan = self.planner.plan(files, dry_run=dry_run)
            if not dry_run:
                files.remember(plan)
            return plan

    def with_rows(self, uris: Collection[str]) -> set[str]:
        """Which of some files (canonical URIs) have rows in any version; all if unknown."""
        search = FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes)
        history = HistorySearch(search=search, files=self.summarised, may_learn=False)
        try:
            namings = list(history.everywhere(uris, size_bytes=0, is_wanted=lambda _: False))
        except RecordUnreadable:
            return set(uris)
        return {each.uri for each in namings if each.state == "compacted"}

    def data(self, plan: Plan) -> Iterator[ObjectInfo]:
        """The input files, planned or not; counts all others in a plan."""
        excludes = self.state.rules.excludes
        return source_files(self.listing, self.sources, plan, excludes=excludes, with_hidden=self.with_hidden)


@dataclass(slots=True)
class _NewFiles(Source):
    """The files in sources that are new, appended to, or to be taken anew."""

    of: FolderPlanner
    listed: FileSpill
    settle_seconds: float
    _found: Matches = field(default_factory=Matches, init=False)
    _taken: set[str] = field(default_factory=set, init=False)
    _is_all_read: bool = field(default=True, init=False)

    is_listing = True

    def candidates(self, plan: Plan) -> Iterator[Candidate]:
        self.listed.add(self.of.state.meter.each("file", self._settled(plan)))
        self.listed.sort()
        open_ones, suspects = self._open_ones(plan)
        known = self._known(may_learn=not plan.dry_run)
        found = self._found = known.of(open_ones, frozenset(suspects))
        self._is_all_read = not known.unread
        unfinished = found.unfinished.keys() - found.known - found.grown.keys()
        plan.planned_before += len(found.known - suspects) + len(found.touched) + len(found.renamed) + len(unfinished)
        plan.planned_before -= len(suspects & found.replaced.keys())
        plan.touched, plan.renamed, plan.grown = len(found.touched), len(found.renamed), len(found.grown)
        taken = self._taken = self._sorted(plan, found, suspects)
        for uri, each in open_ones.items():
            if (part := found.grown.get(uri)) is not None:  # guard: of a file that grew, only the new lines are taken
                grown = {"range": part, "size_bytes": part.size_bytes}
                yield Candidate.of_file(each.listed.date, each.file.model_copy(update=grown))
            elif uri in taken or not (found.has(uri) or uri in suspects):
                yield Candidate.of_file(each.listed.date, each.file)

    def remember(self, plan: Plan) -> None:
        """Remember the files as they are now, after planning them."""
        seen = self.of.seen
        left = self._found.replaced.keys() - self._taken  # these remain replaced for the next plan
        for page in self.listed.pages(self.of.planner.page_files):
            seen.remember([each.info for each in page if each.uri not in left])
        if self._is_all_read and "unsettled" not in plan.skipped:  # otherwise one of these may turn out to have grown
            seen.pass_over([(each.uri, each.etag or "") for each in self._found.passed])

    def _open_ones(self, plan: Plan) -> tuple[dict[str, Listed], set[str]]:
        """The files without claims or with suspect bytes, by canonical URI; counts the others."""
        open_ones: dict[str, Listed] = {}
        suspects: set[str] = set()
        files = sum(each for _, each, _ in self.listed.dates())
        pages = self.listed.pages(self.of.planner.page_files)
        for page in self.of.state.meter.each("file", pages, files, len):
            keys = [claim_key(each.as_named()) for each in page]
            claimed = self.of.planner.claimer.states(keys)
            plan.count_claimed(claimed)
            taken = [each.info for key, each in zip(keys, page, strict=True) if state_of(claimed, key) == "taken"]
            suspects |= self.of.seen.rewritten(taken)
            for key, each in zip(keys, page, strict=True):
                if state_of(claimed, key) == "free" or each.uri in suspects:
                    open_ones[each.uri] = Listed(each, self.of.state.rules.with_path_columns(each.as_named()))
        return open_ones, suspects

    def _known(self, *, may_learn: bool) -> KnownFiles:
        return KnownFiles(
            state=self.of.state,
            allowed_prefixes=self.of.allowed_prefixes,
            sources=self.of.sources,
            seen=self.of.seen,
            listed=self.listed,
            summarised=self.of.summarised,
            may_learn=may_learn,
        )

    def _settled(self, plan: Plan) -> Iterator[SpilledFile]:
        now = self.of.state.clock.now()
        for info in self.of.data(plan):
            if not is_s3(info.uri) and not is_settled(info, now, self.settle_seconds):
                plan.skip("unsettled", info.uri)
                detail = f"written less than {self.settle_seconds:g} s ago; expected it to be complete"
                plan.left_out.append(LeftOut(info.uri, "unsettled", detail))
                continue
            dated = date_of_file(info.uri, info.modified_at)
            yield SpilledFile.listed(dated.date, info, dated.rule)

    def _sorted(self, plan: Plan, found: Matches, suspects: set[str]) -> set[str]:
        """Decide how to treat replaced files; return those to take with all their lines."""
        plan.replaced = len(found.replaced)
        for uri, naming in found.undecided.items():
            detail = f"manifest {naming.manifest_id} names it as {naming.uri}, and is not done"
            plan.left_out.append(LeftOut(uri, "undecided", detail))
        for uri, end in found.unfinished.items():
            detail = f"its last line, from byte {end:,} on, has no line feed; expected one at its end"
            plan.left_out.append(LeftOut(uri, "unfinished", detail))
        taken: set[str] = set()
        for uri, each in found.replaced.items():
            if self.of.on_replaced == "append" and uri not in suspects:
                taken.add(uri)
            elif self.of.on_replaced == "rebuild":
                plan.replacements.append(each)
            else:
                plan.left_out.append(left_out(each))
        return taken


def left_out(replacement: Replacement, why: str = "") -> LeftOut:
    """A replaced file that was not taken; `why` says what prevents rebuilding its rows."""
    return LeftOut(replacement.file.uri, "replaced", f"{replacement.detail}{f'; {why}' if why else ''}")

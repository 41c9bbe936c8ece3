"""Plans the files in sources: each version once, whatever happened to the files between two calls."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileStatus
from compactor.core.errors import RecordUnreadable
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, is_s3
from compactor.core.ports import ObjectInfo
from compactor.core.versions import Beginning, version_of_beginning
from compactor.ledger.state import State
from compactor.sources.candidates import Candidate, is_settled
from compactor.sources.claiming import Claimer, claim_key, state_of
from compactor.sources.file_search import FileSearch
from compactor.sources.folders.history import HistorySearch, SummarisedFiles
from compactor.sources.folders.known_files import UNFINISHED_SECONDS, KnownFiles, Listed, SeenFiles
from compactor.sources.folders.matching import Matches
from compactor.sources.input_files import (
    EVERYTHING,
    OUT_OF_SCOPE,
    FileScope,
    Listing,
    dated_files,
    source_files,
    unsettled,
)
from compactor.sources.plan import LeftOut, Plan, Replacement
from compactor.sources.planner import Planner, Source
from compactor.sources.spill import FileSpill


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


_DOWNLOADS = (".part", ".partial", ".filepart", ".crdownload", ".download", ".tmp")
"""Endings of files that get another name when they are complete."""


_BLOCK_BYTES = 4096  # the shortest block that a buffering writer writes, by default of C's library


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlanner:
    """Plans all files in some sources.

    Attributes:
        listing: Lists one source.
        skips: Why a file is no input by its URI; see `source_files`.
        new_spill: Creates the storage for one plan's listing.
        summarised: Remembers the files of closed dates; None for no cache.
        takes_grown: Whether new lines of files with rows are taken.
        written: Where the last complete line of files that are being written ended some seconds ago, by canonical URI;
            see `SeenFiles.last_line_end`. These lines are taken if they are still there, and more was appended.
    """

    planner: Planner
    allowed_prefixes: Sequence[str]
    listing: Listing
    skips: Callable[[str], str]
    sources: Sequence[SourcePlace]
    seen: SeenFiles
    new_spill: Callable[[], FileSpill]
    summarised: SummarisedFiles | None = None
    scope: FileScope = EVERYTHING
    on_replaced: OnReplaced = "quarantine"
    takes_grown: bool = True
    written: Mapping[str, Beginning] = field(default_factory=dict)

    @property
    def state(self) -> State:
        return self.planner.state

    def plan(self, *, limit: int | None = None, dry_run: bool = False) -> Plan:
        """Write manifests for all files that are in none. Memory grows only with their number.

        Args:
            limit: The most manifests to write, earliest dates first; None for no limit.
            dry_run: Claim and write nothing.
        """
        with nullcontext(True) if dry_run else self.seen.alone() as is_alone, closing(self.new_spill()) as listed:
            files = _NewFiles(self, listed, is_alone)
            plan = self.planner.plan(files, limit=limit, dry_run=dry_run)
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
        return source_files(self.listing, self.sources, plan, skips=self.skips, with_hidden=self.scope.hidden)


@dataclass(slots=True)
class _NewFiles(Source):
    """The files in sources that are new, appended to, or to be taken anew."""

    of: FolderPlanner
    listed: FileSpill
    is_alone: bool
    _found: Matches = field(default_factory=Matches, init=False)
    _taken: set[str] = field(default_factory=set, init=False)
    _is_all_read: bool = field(default=True, init=False)
    _growing: set[str] = field(default_factory=set, init=False)  # of which only complete lines of before are taken

    is_listing = True

    def candidates(self, plan: Plan) -> Iterator[Candidate]:
        now = self.of.state.clock.now()
        dated = dated_files(self.of.data(plan), self.of.scope, plan, now, self._taken_part)
        self.listed.add(self.of.state.meter.each("file", dated))
        self.listed.sort()
        open_ones, suspects, released = self._open_ones(plan)
        known = self._known(may_learn=not plan.dry_run)
        found = self._found = known.of(open_ones, frozenset(suspects), frozenset(released))
        self._is_all_read = not (known.unread or self._growing)
        self._leave_unclear(plan, found, open_ones)
        unfinished = found.unfinished.keys() - found.known - found.grown.keys()
        plan.planned_before += len(found.known - suspects) + len(found.touched) + len(found.renamed) + len(unfinished)
        plan.planned_before -= len(suspects & found.replaced.keys())
        plan.touched, plan.renamed, plan.grown = len(found.touched), len(found.renamed), len(found.grown)
        self._leave_unfinished(plan, found.unfinished, open_ones)
        taken = self._taken = self._sorted(plan, found, suspects)
        for uri, each in open_ones.items():
            file, part = each.file, found.grown.get(uri)
            if part is None and uri not in taken and (found.has(uri) or uri in suspects):
                continue
            if part is None and uri in self._growing:
                part = known.first_lines(file)
                if part is None:
                    self._leave_unsettled(plan, uri)
                    continue
            if follows := found.follows.get(uri):
                file = file.model_copy(update={"follows": follows})
            if part is not None:  # guard: of a file that grew, only the new lines are taken
                file = file.model_copy(update={"range": part, "size_bytes": part.size_bytes})
            yield Candidate.of_file(each.listed.date, file)
        plan.unfinished += sorted(self._growing)

    def _taken_part(self, info: ObjectInfo, is_settled: bool) -> ObjectInfo | None:
        """The complete lines that a file had some seconds ago, as a version of it, if it still has them.

        A settled file is taken as it is, unless its writer seems to have paused within a line.
        """
        uri, seen = canonical(info.uri), self.of.seen
        # guard: a line that a buffering writer goes on with is not split
        end = seen.torn_line(info) if is_settled and self._may_be_torn(info) else None
        if is_settled and end is None:
            return info
        end = end or self.of.written.get(uri)
        # guard: two planners do not take lines of a growing file at once
        waits = uri.endswith(_DOWNLOADS) or not self.of.takes_grown or not self.is_alone
        # guard: lines of a file that is being written are taken once they were there for a while
        if waits or end is None or end != seen.last_line_end(info, end[0]):
            return None
        self._growing.add(uri)
        return replace(info, size_bytes=end[0], etag=version_of_beginning(info.etag, end[0]), stamp="")

    def _may_be_torn(self, info: ObjectInfo) -> bool:
        """Whether a file may end with a block of a buffering writer."""
        is_long = (info.size_bytes or 0) >= _BLOCK_BYTES and not is_s3(info.uri)
        return is_long and not is_settled(info, self.of.state.clock.now(), UNFINISHED_SECONDS)

    def _leave_unclear(self, plan: Plan, found: Matches, open_ones: dict[str, Listed]) -> None:
        """Leave files that are being written, and do not just go on, until they are not."""
        unclear = {*found.undecided, *found.compressed, *found.replaced}
        for uri in sorted(self._growing & unclear):
            replacement = found.replaced.pop(uri, None)
            has_rows = replacement is not None and replacement.earlier.state == "compacted"
            if replacement is not None and has_rows and self._taken_part(open_ones[uri].listed.info, False) is not None:
                plan.replaced += 1
                plan.left_out.append(left_out(replacement, "it is being written"))
                self._growing.discard(uri)
            else:
                self._leave_unsettled(plan, uri)
            for each in (found.undecided, found.compressed, open_ones):
                each.pop(uri, None)

    def _leave_unsettled(self, plan: Plan, uri: str) -> None:
        self._growing.discard(uri)
        plan.skip("unsettled", uri)
        plan.left_out.append(unsettled(uri, self.of.scope.settle_seconds))

    def remember(self, plan: Plan) -> None:
        """Remember the files as they are now, after planning them."""
        seen = self.of.seen
        left = self._found.replaced.keys() - self._taken  # these remain replaced for the next plan
        for page in self.listed.pages(self.of.planner.page_files):
            seen.remember([each.info for each in page if each.uri not in left])
        # guard: a version that is back may leave again
        seen.remember([], [(each.uri, each.etag or "") for each in self._found.present])
        if self._is_all_read and plan.skipped.keys().isdisjoint(
            OUT_OF_SCOPE
        ):  # else one of these may turn out to have grown
            seen.pass_over([(each.uri, each.etag or "") for each in self._found.passed])

    def _open_ones(self, plan: Plan) -> tuple[dict[str, Listed], set[str], set[str]]:
        """The files without claims or with suspect bytes, by canonical URI, those, and released ones; see `Matching`.

        Counts the others.
        """
        open_ones: dict[str, Listed] = {}
        suspects: set[str] = set()
        released: set[str] = set()
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
                    if key in claimed:
                        released.add(each.uri)
        return open_ones, suspects, released

    def _known(self, *, may_learn: bool) -> KnownFiles:
        return KnownFiles(
            state=self.of.state,
            allowed_prefixes=self.of.allowed_prefixes,
            sources=self.of.sources,
            seen=self.of.seen,
            listed=self.listed,
            summarised=self.of.summarised,
            may_learn=may_learn,
            takes_grown=self.of.takes_grown,
            growing=self._growing,
        )

    def _leave_unfinished(self, plan: Plan, found: Mapping[str, int], listed: Mapping[str, Listed]) -> None:
        now = self.of.state.clock.now()
        for uri, end in found.items():
            if is_settled(listed[uri].listed.info, now, UNFINISHED_SECONDS):
                detail = f"its last line, from byte {end:,} on, has no line feed; expected one at its end"
                plan.left_out.append(LeftOut(uri, "unfinished", detail))
            else:
                plan.unfinished.append(uri)

    def _sorted(self, plan: Plan, found: Matches, suspects: set[str]) -> set[str]:
        """Decide how to treat replaced files; return those to take with all their lines."""
        plan.replaced += len(found.replaced)
        for uri, naming in found.undecided.items():
            detail = f"manifest {naming.manifest_id} names it as {naming.uri}, and is not done"
            plan.left_out.append(LeftOut(uri, "undecided", detail))
        for uri, naming in found.compressed.items():
            detail = f"begins with the {naming.size_bytes:,} bytes of {naming.uri} in manifest {naming.manifest_id}"
            plan.left_out.append(LeftOut(uri, "compressed", f"{detail}, and goes on"))
        taken: set[str] = set()
        for uri, each in found.replaced.items():
            if self.of.on_replaced == "append" and uri not in suspects:
                taken.add(uri)
                found.follows[uri] = each.earlier.manifest_id
            elif self.of.on_replaced == "rebuild":
                plan.replacements.append(each)
            else:
                plan.left_out.append(left_out(each))
        return taken


def left_out(replacement: Replacement, why: str = "") -> LeftOut:
    """A replaced file that was not taken; `why` says what prevents rebuilding its rows."""
    file, detail = replacement.file, f"{replacement.detail}{f'; {why}' if why else ''}"
    return LeftOut(file.uri, "replaced", detail, replacement.earlier.manifest_id, file.etag or "")

"""Plans the files of sources: each version once, whatever happened to the files between two calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from compactor.core.layout import canonical, is_s3
from compactor.core.ports import ObjectInfo
from compactor.core.source_places import SourcePlace
from compactor.manifests.claiming import claim_key
from compactor.manifests.file_fates import Fates, Replacement
from compactor.manifests.others import count_others
from compactor.manifests.planning import LeftOut, Plan, Planner, is_settled, listed_file
from compactor.manifests.seen_files import SeenFiles
from compactor.manifests.source_fates import Listed, SourceFates
from compactor.manifests.source_files import Listing, source_files
from compactor.manifests.summarised_files import NothingSummarised, SummarisedFiles

if TYPE_CHECKING:
    from compactor.core.manifest import ManifestFile

OnReplaced = Literal["quarantine", "rebuild", "append"]
"""What to do with a file whose earlier version has rows: leave it out, make the rows again, or take all its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlanner:
    """Plans everything in some sources.

    Attributes:
        listing: Lists one of them.
        summarised: Remembers the files of closed dates.
        with_hidden: Whether to take hidden files.
    """

    planner: Planner
    listing: Listing
    sources: Sequence[SourcePlace]
    seen: SeenFiles
    summarised: SummarisedFiles = field(default_factory=NothingSummarised)
    on_replaced: OnReplaced = "quarantine"
    with_hidden: bool = False

    def plan(self, *, settle_seconds: float = 0, dry_run: bool = False) -> Plan:
        """Write manifests for all files that are in none.

        Args:
            settle_seconds: Take only files that were last written at least this long ago.
            dry_run: Claim and write nothing.
        """
        plan = Plan()
        listed = self._listed(plan, settle_seconds)
        claimed = self.planner.claimer.states([claim_key(each.file) for each in listed.values()])
        count_others(plan, claimed)
        claims = {uri: claimed[key][0] for uri, each in listed.items() if (key := claim_key(each.file)) in claimed}
        suspects = self.seen.rewritten([listed[uri].info for uri, state in claims.items() if state == "taken"])
        open_ones = {uri: each for uri, each in listed.items() if claims.get(uri, "free") == "free" or uri in suspects}
        fates = self._fates_in(listed, may_learn=not dry_run)
        found = fates.of(open_ones, frozenset(suspects))
        plan.planned_before += len(found.known - suspects) + len(found.touched) + len(found.renamed)
        plan.planned_before -= len(suspects & found.replaced.keys())
        plan.touched, plan.renamed = len(found.touched), len(found.renamed)
        taken = self._sorted(plan, found, suspects)
        by_date: dict[str, list[ManifestFile]] = {}
        for uri, each in open_ones.items():
            if uri in taken or not (found.has(uri) or uri in suspects):
                by_date.setdefault(each.date, []).append(each.file)
        self.planner.take(dict(sorted(by_date.items())), plan, dry_run=dry_run)
        if not dry_run:
            left = found.replaced.keys() - taken  # these stay remembered as they were: replaced for the next plan, too
            self.seen.remember([each.info for uri, each in listed.items() if uri not in left])
            if not (fates.unread or "unsettled" in plan.skipped):  # else one of these may be found to have grown
                self.seen.pass_over([(each.uri, each.etag or "") for each in found.passed])
        return plan

    def _fates_in(self, listed: Mapping[str, Listed], *, may_learn: bool) -> SourceFates:
        return SourceFates(
            state=self.planner.state,
            allowed_prefixes=self.planner.allowed_prefixes,
            sources=self.sources,
            seen=self.seen,
            listed=listed,
            summarised=self.summarised,
            may_learn=may_learn,
        )

    def _listed(self, plan: Plan, settle_seconds: float) -> dict[str, Listed]:
        """The files that may be planned, by canonical URI."""
        rules, now = self.planner.state.rules, self.planner.state.clock.now()
        listed: dict[str, Listed] = {}
        for info in self.data(plan):
            if not is_s3(info.uri) and not is_settled(info, now, settle_seconds):
                plan.skip(info.uri, "unsettled")
                detail = f"written less than {settle_seconds:g} s ago; expected it to be complete"
                plan.left_out.append(LeftOut(info.uri, "unsettled", detail))
                continue
            dated = rules.dates.of_file(info.uri, info.modified_at)
            file = rules.with_path_columns(listed_file(info, dated.rule))
            listed[canonical(info.uri)] = Listed(info, file, dated.date)
        return listed

    def data(self, plan: Plan) -> Iterator[ObjectInfo]:
        """The files that are input, planned or not; counts all others in a plan."""
        return source_files(self.listing, self.sources, plan, with_hidden=self.with_hidden)

    def _sorted(self, plan: Plan, found: Fates, suspects: set[str]) -> set[str]:
        """Sort the replaced files by what is done with them; returns those to take with all their lines."""
        plan.replaced = len(found.replaced)
        for uri, naming in found.undecided.items():
            detail = f"manifest {naming.manifest_id} names it as {naming.uri}, and is not done"
            plan.left_out.append(LeftOut(uri, "undecided", detail))
        taken: set[str] = set()
        for uri, each in found.replaced.items():
            if self.on_replaced == "append" and uri not in suspects:
                taken.add(uri)
            elif self.on_replaced == "rebuild":
                plan.replacements.append(each)
            else:
                plan.left_out.append(left_out(each))
        return taken


def left_out(replacement: Replacement, why: str = "") -> LeftOut:
    """A replaced file that was not taken; `why` says what is in the way of making its rows again."""
    return LeftOut(replacement.file.uri, "replaced", f"{replacement.detail}{f'; {why}' if why else ''}")

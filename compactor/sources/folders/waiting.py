"""Plans the sources of one call: waits some seconds for files to settle, and for other planners."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from compactor.core.layout import canonical, is_s3
from compactor.core.ports import Clock
from compactor.core.versions import Beginning
from compactor.sources.candidates import is_settled
from compactor.sources.folders.planning import FolderPlanner
from compactor.sources.plan import Plan
from compactor.telemetry.logs import log_event

SETTLE_SECONDS = 2.0
"""A local file written more recently may be incomplete. On S3 an object appears as a whole."""

SETTLING = "files that are being written"

FIRST_PAUSE_SECONDS = 0.5
MAX_ROUNDS = 10
"""The pauses double, so together they outlast any lease."""


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """The result of a scan of the sources.

    Attributes:
        is_fresh: Whether some input files have just been written.
        written: Where the last complete line of these ends; see `FolderPlanner.written`.
    """

    has_data: bool
    is_fresh: bool
    met: Plan
    written: Mapping[str, Beginning] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PatientPlanner:
    """Plans all files in the sources.

    Attributes:
        on_wait: Called before each wait, with its cause and its length in seconds.
    """

    planner: FolderPlanner
    clock: Clock
    sleep: Callable[[float], None]
    on_wait: Callable[[str, float], None] = lambda _what, _seconds: None

    def scan(self) -> SourceSurvey:
        """Check whether there is data, and whether it is still being written."""
        met, has_data, settle_seconds = Plan(), False, self._settle_seconds
        fresh, now = dict[str, Beginning | None](), self.clock.now()
        for info in self.planner.data(met):
            has_data = True
            if not settle_seconds:
                break
            if not is_s3(info.uri) and not is_settled(info, now, settle_seconds):
                fresh[canonical(info.uri)] = self.planner.seen.last_line_end(info)
        written = {uri: end for uri, end in fresh.items() if end is not None}
        return SourceSurvey(has_data=has_data, is_fresh=bool(fresh), met=met, written=written)

    def plan(self, survey: SourceSurvey, *, dry_run: bool = False) -> Plan:
        """Write manifests for all files that are in none.

        Of files still being written after the wait, only the complete lines that they had before it are taken. Files
        of other kinds are left to the next call, and counted as `unsettled`.
        """
        settle_seconds = self._settle_seconds
        if survey.is_fresh:
            self._wait(SETTLING, settle_seconds)
        scope = replace(self.planner.scope, settle_seconds=settle_seconds)
        planner = replace(self.planner, scope=scope, written=survey.written)
        plan = planner.plan(dry_run=dry_run)
        for number in range(MAX_ROUNDS):
            if dry_run or not plan.held or plan.held_until is None:
                break
            lease_seconds = (plan.held_until - self.clock.now()).total_seconds()
            self._wait("another planner", min(FIRST_PAUSE_SECONDS * 2**number, max(lease_seconds, 0) + 0.1))
            plan = _after(plan, planner.plan())
        return plan

    def _wait(self, what: str, seconds: float) -> None:
        log_event("planning.waiting", waiting_for=what, seconds=round(seconds, 1))
        self.on_wait(what, seconds)
        self.sleep(seconds)

    @property
    def _settle_seconds(self) -> float:
        return 0.0 if all(is_s3(source.folder) for source in self.planner.sources) else SETTLE_SECONDS


def _after(plan: Plan, later: Plan) -> Plan:
    return replace(
        later,
        manifests=[*plan.manifests, *later.manifests],
        planned_before=max(0, later.planned_before - plan.files),
        replaced=max(plan.replaced, later.replaced),
        grown=plan.grown + later.grown,
        unfinished=sorted({*plan.unfinished, *later.unfinished}),
        misdated=plan.misdated + later.misdated,
        first_misdated=plan.first_misdated or later.first_misdated,
    )

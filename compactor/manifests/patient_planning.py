"""Plans a folder in one call: waits some seconds for files to settle, and for other planners."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from compactor.core.layout import folder, is_s3
from compactor.core.ports import Clock, ObjectStore
from compactor.manifests.data_files import not_data_reason
from compactor.manifests.planning import Plan, Planner
from compactor.telemetry.logs import log_event

SETTLE_SECONDS = 2.0
"""A local file that was written to more recently may be incomplete. On S3 an object appears whole."""

SETTLING = "files that are being written"

FIRST_PAUSE_SECONDS = 0.5
MAX_ROUNDS = 10
"""The pauses double, so together they last longer than any lease."""


@dataclass(frozen=True, slots=True)
class SourceSurvey:
    """What a scan of a folder found.

    Attributes:
        has_data: Whether there are input files, planned or not.
        is_fresh: Whether some input files were written just now.
    """

    has_data: bool
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class PatientPlanner:
    """Plans everything in a folder.

    Attributes:
        sleep: Waits for a number of seconds.
        on_wait: Called before each wait, with its cause and its length in seconds.
    """

    planner: Planner
    store: ObjectStore
    clock: Clock
    sleep: Callable[[float], None]
    on_wait: Callable[[str, float], None] = lambda _what, _seconds: None

    def scan(self, source: str) -> SourceSurvey:
        """Check whether there is data, and whether it is still being written."""
        has_data, settle_seconds = False, _settle_seconds(source)
        now = self.clock.now()
        for info in self.store.list(folder(source)):
            if not_data_reason(info.uri, info.size_bytes, [source]) is not None:
                continue
            has_data = True
            if not settle_seconds:
                break
            if abs((now - info.modified_at).total_seconds()) < settle_seconds:
                return SourceSurvey(has_data=True, is_fresh=True)
        return SourceSurvey(has_data=has_data, is_fresh=False)

    def plan(self, source: str, survey: SourceSurvey, *, dry_run: bool = False) -> Plan:
        """Write manifests for all files that are in none.

        Files that are still being written after the wait are left to the next call, and counted as `unsettled`.
        """
        settle_seconds = _settle_seconds(source)
        if survey.is_fresh:
            self._wait(SETTLING, settle_seconds)
        plan = self.planner.plan(source, settle_seconds=settle_seconds, look_back=True, dry_run=dry_run)
        for number in range(MAX_ROUNDS):
            if dry_run or not plan.held or plan.held_until is None:
                break
            lease_seconds = (plan.held_until - self.clock.now()).total_seconds()
            self._wait("another planner", min(FIRST_PAUSE_SECONDS * 2**number, max(lease_seconds, 0) + 0.1))
            plan = _after(plan, self.planner.plan(source, settle_seconds=settle_seconds, look_back=True))
        return plan

    def _wait(self, what: str, seconds: float) -> None:
        log_event("planning.waiting", waiting_for=what, seconds=round(seconds, 1))
        self.on_wait(what, seconds)
        self.sleep(seconds)


def _settle_seconds(source: str) -> float:
    return 0.0 if is_s3(source) else SETTLE_SECONDS


def _after(plan: Plan, later: Plan) -> Plan:
    """The sum of two rounds."""
    own = sum(len(manifest.files) for manifest in plan.manifests)
    return replace(
        later,
        manifests=[*plan.manifests, *later.manifests],
        planned_before=max(0, later.planned_before - own),
        replaced=max(plan.replaced, later.replaced),
        misdated=plan.misdated + later.misdated,
        first_misdated=plan.first_misdated or later.first_misdated,
    )

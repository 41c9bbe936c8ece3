"""The check of the control plane: gather, decide, act, measure, notify."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from compactor.control.decisions import Action, ActionKind, decide
from compactor.control.diagnosis.health import Condition
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.snapshot import JobSeen, JobState, Snapshot, Source
from compactor.core.errors import CompactorError
from compactor.core.ports import FLUSH_SECONDS, Clock, MetricsSink
from compactor.cost.measured_cost import cost_metrics
from compactor.ledger.backlog import WaitingManifests
from compactor.settings.control_policy import Policy
from compactor.telemetry.logs import log_event

BREAKER_OPEN, DOWN, ON_ITS_WAY, RUNNING = -1, 0, 1, 2
"""The values of the metric JobState."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check by the control plane. With `--dry-run` nothing is done."""

    snapshot: Snapshot  # the control plane's view
    actions: tuple[Action, ...]
    done: tuple[str, ...] = ()  # completed actions, in words
    failed: tuple[str, ...] = ()  # failed actions, in words

    @property
    def alarms(self) -> dict[str, str]:
        """The reportable alarms, by finding name."""
        alarms = {action.about: action.reason for action in self.actions if action.kind is ActionKind.ALARM}
        return alarms | ({"action_failed": "; ".join(self.failed)} if self.failed else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Keeps the job as the policy requires, without its own state between checks.

    Attributes:
        stream_metrics: The metrics of each stream in the job, if there are several.
        sum_metrics: The metrics of all shards together, emitted by the first one's check; None elsewhere.
    """

    sources: Sources
    policy: Policy
    notices: Notices
    metrics: MetricsSink
    clock: Clock
    stream_metrics: Mapping[str, MetricsSink] = field(default_factory=dict)
    sum_metrics: MetricsSink | None = None

    def flush_metrics(self) -> None:
        """Send pending metrics."""
        for sink in (self.metrics, *self.stream_metrics.values(), *filter(None, [self.sum_metrics])):
            sink.flush(FLUSH_SECONDS)

    def preview(self) -> Check:
        """Gather and decide, but do nothing."""
        now = self.clock.now()
        snapshot = self.sources.snapshot(now, self.policy)
        return Check(snapshot, decide(snapshot, self.policy, now))

    def check(self) -> Check:
        """Gather, decide and act. Failures are reported, and the next check decides anew."""
        seen = self.preview()
        done: list[str] = []
        failed: list[str] = []
        starts = 0
        if fault := self._note_run(seen.snapshot):
            failed.append(fault)
        for action in seen.actions:
            log_event("control.decided", kind=action.kind, about=action.about, reason=action.reason)
            try:
                outcome = self._carry_out(action, seen.snapshot)
            except CompactorError as exc:
                words = " ".join((action.kind.value.replace("_", " "), *action.targets))
                failed.append(f"{words} failed: {exc}")
                log_event("control.action_failed", kind=action.kind, error=exc)
            else:
                starts += action.kind is ActionKind.START and bool(outcome)
                done += [f"{outcome}: {action.reason}"] if outcome else []
        checked = replace(seen, done=tuple(done), failed=tuple(failed))
        self.metrics.emit({**control_metrics(checked, starts), **running_cost(seen.snapshot, self.clock.now())})
        whole = seen.snapshot.whole_backlog
        if self.sum_metrics is not None and whole is not None:
            of_all = replace(checked, snapshot=replace(seen.snapshot, backlog=whole))
            self.sum_metrics.emit(control_metrics(of_all, starts))
        # One stream may be late while the others are not.
        for name, sink in self.stream_metrics.items():
            if name in seen.snapshot.backlogs:
                sink.emit(_backlog_metrics(seen.snapshot.backlogs[name]))
        self.notices.tell(checked.done, checked.alarms)
        return checked

    def _start(self, seen: Snapshot) -> str:
        run_id = self.sources.job.start()
        before, since = seen.seen, seen.refused_since
        if run_id is None:
            log_event("control.runs_already")  # another start came first, and one run is the goal
            count = before.refused_starts + 1 if since else 1
            refused = {"refused_starts": count, "refused_since": since or self.clock.now()}
            self.sources.keep_seen(before.model_copy(update=refused))
            return ""
        if before.refused_starts:
            try:  # Glue loses the runs of a deleted job, which would end the refusals
                self.sources.keep_seen(before.model_copy(update={"refused_starts": 0, "refused_since": None}))
            except CompactorError as exc:  # not a failure of the start, and over with the run
                log_event("control.action_failed", kind=ActionKind.START, error=exc)
        return f"run {run_id} was started"

    def _note_run(self, seen: Snapshot) -> str:
        """Record that this check is the first to see the living run in its state; return what failed."""
        run, before = next(iter(seen.living_runs), None), seen.seen
        if run is None or Source.SEEN in seen.unknown:
            return ""
        since = before.since_by_state if before.run_id == run.run_id else {}
        if run.state in since:
            return ""
        try:
            self.sources.keep_seen(JobSeen(run_id=run.run_id, since_by_state={**since, run.state: self.clock.now()}))
        except CompactorError as exc:
            return f"failed to record that run {run.run_id} is {run.state}: {exc}"
        return ""

    def _carry_out(self, action: Action, seen: Snapshot) -> str:
        """Carry out an action; return what was done, in words, empty if there was nothing to do."""
        if action.kind is ActionKind.START:
            return self._start(seen)
        if action.kind is ActionKind.ASK_TO_STOP:
            for run_id in action.targets:
                self.sources.runs.ask_to_stop(run_id)
            return f"run {', '.join(action.targets)} of the compactor was asked to stop"
        if action.kind is ActionKind.STOP:
            for run_id in action.targets:
                self.sources.job.stop(run_id)
            return f"{self.policy.service} was told to stop run {', '.join(action.targets)}"
        return ""


def control_metrics(checked: Check, starts: int) -> Mapping[str, float]:
    """The metrics of one check; unknown values are omitted. `starts` counts the started runs."""
    snapshot = checked.snapshot
    values: dict[str, float | None] = {
        "JobState": _job_state(checked),
        "QueueDepth": snapshot.queue.messages if snapshot.queue else None,
        "QueueOldestAgeSeconds": snapshot.queue_oldest_seconds,
        "DeadLetterDepth": snapshot.dead_letters,
        "ManifestsPending": snapshot.backlog.manifests if snapshot.backlog else None,
        "OldestManifestAgeSeconds": snapshot.backlog.oldest_seconds if snapshot.backlog else None,
        "Restarts": starts,
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def _backlog_metrics(backlog: WaitingManifests) -> dict[str, float]:
    return {"ManifestsPending": backlog.manifests, "OldestManifestAgeSeconds": backlog.oldest_seconds}


def running_cost(snapshot: Snapshot, now: datetime) -> Mapping[str, float]:
    """The cost metrics of the active runs; empty if their size is unknown."""
    sizes = [run.size for run in snapshot.living_runs if run.state in {JobState.RUNNING, JobState.STOPPING}]
    known = [size for size in sizes if size is not None]
    if snapshot.runs is None or len(known) < len(sizes):
        return {}
    return cost_metrics(known, snapshot.recent or (), now)


def _job_state(checked: Check) -> int | None:
    if checked.snapshot.runs is None:
        return None
    living = checked.snapshot.living_runs
    if any(run.state is JobState.RUNNING for run in living):
        return RUNNING
    if living:
        return ON_ITS_WAY
    return BREAKER_OPEN if Condition.CRASH_LOOP in checked.alarms else DOWN

"""One look at the job: gathers, decides, carries out, measures, tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from compactor.control.actions import Action, ActionKind
from compactor.control.decisions import decide
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.runs import JobState
from compactor.control.snapshot import Snapshot
from compactor.core.errors import CompactorError
from compactor.core.ports import Clock, MetricsSink
from compactor.cost.measured_cost import cost_metrics
from compactor.settings.control_policy import Policy
from compactor.telemetry.logs import log_event

BREAKER_OPEN, DOWN, ON_ITS_WAY, RUNNING = -1, 0, 1, 2
"""The values of the metric JobState."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one look at the job came to.

    Attributes:
        snapshot: What was seen.
        actions: What was decided.
        done: What was done, in words.
        failed: What could not be done, in words.
    """

    snapshot: Snapshot
    actions: tuple[Action, ...]
    done: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def alarms(self) -> dict[str, str]:
        """What a person should know of, by what it is about."""
        alarms = {action.about: action.reason for action in self.actions if action.kind is ActionKind.ALARM}
        return alarms | ({"action_failed": "; ".join(self.failed)} if self.failed else {})


class ControlPlane:
    """Keeps the job as the policy wants it. Keeps nothing in mind from one look to the next.

    Args:
        sources: What is looked at, and acted on.
        policy: What to go by.
        notices: Tells people.
        metrics: Where measurements go.
        clock: Time.
    """

    def __init__(
        self, sources: Sources, policy: Policy, *, notices: Notices, metrics: MetricsSink, clock: Clock
    ) -> None:
        self._sources = sources
        self._policy = policy
        self._notices = notices
        self._metrics = metrics
        self._clock = clock

    def look(self) -> Step:
        """See and decide, and do nothing."""
        now = self._clock.now()
        snapshot = self._sources.snapshot(now)
        return Step(snapshot, decide(snapshot, self._policy, now))

    def step(self) -> Step:
        """See, decide and do. What cannot be done is told, and decided anew at the next look."""
        seen = self.look()
        done: list[str] = []
        failed: list[str] = []
        starts = 0
        for action in seen.actions:
            log_event("control.decided", kind=action.kind, about=action.about, reason=action.reason)
            try:
                outcome = self._carry_out(action)
            except CompactorError as exc:
                failed.append(f"{_words(action)} failed: {exc}")
                log_event("control.action_failed", kind=action.kind, error=exc)
            else:
                starts += action.kind is ActionKind.START and bool(outcome)
                done += [f"{outcome}: {action.reason}"] if outcome else []
        step = Step(seen.snapshot, seen.actions, tuple(done), tuple(failed))
        self._metrics.emit({**control_metrics(step, starts), **running_cost(step.snapshot, self._clock.now())})
        self._notices.tell(step.done, step.alarms)
        return step

    def _carry_out(self, action: Action) -> str:
        """Do it.

        Returns:
            What was done, in words; nothing if there was nothing to do.
        """
        if action.kind is ActionKind.START:
            run_id = self._sources.job.start()
            if run_id is None:
                log_event("control.runs_already")  # somebody was faster, and one run is what is wanted
            return f"run {run_id} was started" if run_id else ""
        if action.kind is ActionKind.ASK_TO_STOP:
            for run_id in action.targets:
                self._sources.runs.ask_to_stop(run_id)
            return f"run {', '.join(action.targets)} of the compactor was asked to end"
        if action.kind is ActionKind.STOP:
            for run_id in action.targets:
                self._sources.job.stop(run_id)
            return f"Glue was told to stop run {', '.join(action.targets)}"
        return ""


def control_metrics(step: Step, starts: int) -> Mapping[str, float]:
    """The figures of one look; what is not known is left out.

    Args:
        step: The look.
        starts: How many runs were started.
    """
    snapshot = step.snapshot
    values: dict[str, float | None] = {
        "JobState": _job_state(step),
        "QueueDepth": snapshot.queue.waiting + snapshot.queue.in_flight if snapshot.queue else None,
        "QueueOldestAgeSeconds": snapshot.queue_oldest_seconds,
        "DeadLetterDepth": snapshot.dead_letters,
        "ManifestsPending": snapshot.backlog.manifests if snapshot.backlog else None,
        "OldestManifestAgeSeconds": snapshot.backlog.oldest_seconds if snapshot.backlog else None,
        "Restarts": starts,
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def running_cost(snapshot: Snapshot, now: datetime) -> Mapping[str, float]:
    """What the runs cost that are up; nothing where that is not known."""
    sizes = [run.size for run in snapshot.living_runs if run.state in {JobState.RUNNING, JobState.STOPPING}]
    known = [size for size in sizes if size is not None]
    if snapshot.runs is None or len(known) < len(sizes):
        return {}
    return cost_metrics(known, snapshot.recent or (), now)


def _job_state(step: Step) -> int | None:
    if step.snapshot.runs is None:
        return None
    living = step.snapshot.living_runs
    if any(run.state is JobState.RUNNING for run in living):
        return RUNNING
    if living:
        return ON_ITS_WAY
    return BREAKER_OPEN if "breaker_open" in step.alarms else DOWN


def _words(action: Action) -> str:
    return " ".join((action.kind.value.replace("_", " "), *action.targets))

"""Plans the topics of one cluster again and again, for as long as a job runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.errors import CompactorError
from compactor.core.kafka.ranges import Topic
from compactor.core.ports import Clock, MetricsSink
from compactor.core.rules.backoff import pause_seconds
from compactor.ledger.kafka.planned_work import PlannedWork
from compactor.ledger.kafka.topic_notes import TopicNotes
from compactor.manifests.kafka.arrivals import Arrivals
from compactor.manifests.kafka.cutting import Uncut
from compactor.manifests.kafka.lag import Lag, about_topic
from compactor.manifests.kafka.planner import KafkaPlanner, TopicPlan
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

LONGEST_PAUSE_SECONDS = 600.0
"""The longest pause after plans that failed; they begin at the time between two plans, and double."""

SHORTEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRules:
    """When to plan.

    Attributes:
        plan_seconds: The longest time between two plans of a topic.
        max_wait_seconds: How long a record may wait for others to fill a manifest with it.
        max_manifests: The most manifests that one plan writes.
        partition_metrics: Whether to emit metrics for each partition, too.
    """

    plan_seconds: float
    max_wait_seconds: float
    max_manifests: int
    partition_metrics: bool = False


@dataclass(slots=True)
class _Turn:
    """What is known of one topic.

    Attributes:
        next_at: When it is planned next.
        seen_at: When a plan last succeeded, or the topic was first to be planned.
        failures: How many plans have failed in a row.
        error: Why the last of these failed; None if it did not.
        waits: Since when the first unplanned record of each partition waits.
        told: What the log was told of the topic and its partitions.
    """

    next_at: datetime
    seen_at: datetime
    failures: int = 0
    error: Exception | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)
    waits: dict[int, datetime] = field(default_factory=dict)
    told: tuple[object, ...] = ()

    @property
    def waits_since(self) -> datetime | None:
        """Since when the oldest of all unplanned records waits; None if there is none."""
        return min(self.waits.values(), default=None)


@dataclass(slots=True, kw_only=True)
class TopicLoop:
    """Plans topics. A manifest is written as soon as it is full, or when its oldest record has waited long enough.

    A topic that fails is tried again after a pause, whatever the error: a person may have acted. Other topics go on.

    Attributes:
        topics: Those of one cluster.
        new_planner: Makes the planner; what it raises is a failure of the topics.
        notes: Where people see how far planning is.
        work: Counts what is planned and not done.
    """

    topics: Sequence[Topic]
    rules: LoopRules
    new_planner: Callable[[], KafkaPlanner]
    notes: TopicNotes
    work: PlannedWork
    metrics: MetricsSink
    clock: Clock
    _turns: dict[Topic, _Turn] = field(default_factory=dict, init=False)
    _planner: KafkaPlanner | None = field(default=None, init=False)

    def step(self, *, is_stopping: Callable[[], bool] = lambda: False) -> float:
        """Plan each topic whose turn it is; never raises. Returns the seconds until the next turn."""
        for topic in self.topics:
            turn = self._turns.setdefault(topic, _Turn(self.clock.now(), self.clock.now()))
            if self.clock.now() >= turn.next_at and not is_stopping():
                pause = self._take(topic, turn)
                turn.next_at = self.clock.now() + timedelta(seconds=pause)
        next_at = min((each.next_at for each in self._turns.values()), default=self.clock.now())
        return max((next_at - self.clock.now()).total_seconds(), 0.0)

    def plan_all(self, *, is_stopping: Callable[[], bool] = lambda: False) -> dict[Topic, Exception]:
        """Plan all that is there; never raises. Returns the topics that failed, each with the reason."""
        failed = dict[Topic, Exception]()
        for topic in self.topics:
            turn = _Turn(self.clock.now(), self.clock.now())
            while not is_stopping() and not self._take(topic, turn, everything=True):
                continue  # a plan writes only so many manifests
            if turn.error is not None:
                failed[topic] = turn.error
        return failed

    def _take(self, topic: Topic, turn: _Turn, *, everything: bool = False) -> float:
        """Plan a topic; returns the pause until its next turn, which is 0 if more manifests wait to be written."""
        try:
            plan = self._plan(topic, turn, everything=everything)
        except Exception as exc:  # noqa: BLE001 - no error of a topic may end the planning of others
            return self._failed(topic, turn, exc)
        turn.failures, turn.error, turn.seen_at = 0, None, self.clock.now()
        self._tell(topic, turn, plan)
        if plan.totals.left_manifests:
            return 0.0
        since, longest = turn.waits_since, self.rules.plan_seconds
        if since is None:
            return longest
        due = since + timedelta(seconds=self.rules.max_wait_seconds)
        return max(min(longest, (due - self.clock.now()).total_seconds()), min(SHORTEST_PAUSE_SECONDS, longest))

    def _plan(self, topic: Topic, turn: _Turn, *, everything: bool) -> TopicPlan:
        def is_due(topic_id: str, partitions: Sequence[Uncut]) -> bool:
            now = self.clock.now()
            came = turn.arrivals.see(topic_id, partitions, now).values()
            return everything or any((now - each).total_seconds() >= self.rules.max_wait_seconds for each in came)

        if self._planner is None:
            self._planner = self.new_planner()
        plan = self._planner.plan(topic, max_manifests=self.rules.max_manifests, is_due=is_due)
        turn.waits = turn.arrivals.see(plan.topic_id, plan.partitions, self.clock.now())
        return plan

    def _failed(self, topic: Topic, turn: _Turn, error: Exception) -> float:
        turn.failures, turn.error = turn.failures + 1, error
        longest = max(LONGEST_PAUSE_SECONDS, self.rules.plan_seconds)
        pause = pause_seconds(turn.failures, first_seconds=self.rules.plan_seconds, longest_seconds=longest, chance=1.0)
        self.notes.failed(topic, described(error))
        # What came since the last plan is not known; it may wait since then.
        since = min(turn.seen_at, turn.waits_since or turn.seen_at)
        values = {"TopicPlansFailed": 1.0, "TopicUnplannedSeconds": (self.clock.now() - since).total_seconds()}
        self.metrics.emit(values)
        self.metrics.emit(values, about_topic(topic))
        log_event("topic.not_planned", topic=topic.uri, failures=turn.failures, pause_seconds=pause, error=error)
        return pause

    def _tell(self, topic: Topic, turn: _Turn, plan: TopicPlan) -> None:
        """Say what came of a plan: in the log what happened, in metrics and the notes what waits."""
        if plan.totals.manifests:
            manifests, ranges = len(plan.totals.manifests), plan.totals.files
            log_event("topic.planned", topic=topic.uri, manifests=manifests, ranges=ranges)
        if plan.removed:
            offsets = sum(each.offsets for each in plan.removed)
            log_event("topic.records_removed", topic=topic.uri, ranges=len(plan.removed), offsets=offsets)
        told = (tuple(sorted(plan.cut_off)), *plan.former_ids)
        if told != turn.told:
            turn.told = told
            if plan.cut_off:
                log_event("topic.cut_off", topic=topic.uri, partitions=list(plan.cut_off))
            if plan.former_ids:
                log_event("topic.made_again", topic=topic.uri, former_ids=plan.former_ids)
        try:
            planned = self.work.offsets()
        except CompactorError as exc:
            log_event("topic.not_counted", topic=topic.uri, error=exc)
            return
        lag = Lag.of(topic, turn.waits, plan.partitions, planned, self.clock.now())
        self._emit(topic, lag)
        self.notes.planned(topic, plan.topic_id, lag.progress, lag.planned_offsets)

    def _emit(self, topic: Topic, lag: Lag) -> None:
        self.metrics.emit(lag.metrics())
        self.metrics.emit(lag.metrics(), about_topic(topic))
        if self.rules.partition_metrics:
            for each in lag.partitions:
                about = {**about_topic(topic), "Partition": str(each.partition)}
                self.metrics.emit(lag.metrics_of(each), about)

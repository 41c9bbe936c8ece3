"""Plans the topics of one cluster again and again, for as long as a job runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
        seen_at: When a plan last succeeded without any trouble, or the topic was first to be planned.
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

    A topic that fails is tried again after a pause, whatever the error: a person may have acted. Other topics go on,
    unless the cluster itself does not answer: it is asked once for all of them, for each question may take long.

    Attributes:
        cluster: The name of the cluster.
        topics: Its topics.
        new_planner: Makes the planner; what it raises is a failure of the topics.
        notes: Where people see how far planning is.
        work: Counts what is planned and not done.
    """

    cluster: str
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
        turns = {topic: self._turns.setdefault(topic, self._new_turn()) for topic in self.topics}
        now = self.clock.now()
        due = {topic: turn for topic, turn in turns.items() if now >= turn.next_at}
        for topic, pause in self._pauses(due, is_stopping, everything=False):
            turns[topic].next_at = self.clock.now() + timedelta(seconds=pause)
        next_at = min((each.next_at for each in turns.values()), default=self.clock.now())
        return max((next_at - self.clock.now()).total_seconds(), 0.0)

    def plan_all(self, *, is_stopping: Callable[[], bool] = lambda: False) -> dict[Topic, Exception]:
        """Plan all that is there; never raises. Returns the topics that failed, each with the reason."""
        turns = {topic: self._new_turn() for topic in self.topics}
        left = turns
        while left and not is_stopping():  # a plan writes only so many manifests
            done = {topic for topic, pause in self._pauses(left, is_stopping, everything=True) if pause}
            left = {topic: turn for topic, turn in left.items() if topic not in done}
        return {topic: turn.error for topic, turn in turns.items() if turn.error is not None}

    def _new_turn(self) -> _Turn:
        return _Turn(self.clock.now(), self.clock.now())

    def _pauses(
        self, due: Mapping[Topic, _Turn], is_stopping: Callable[[], bool], *, everything: bool
    ) -> Iterator[tuple[Topic, float]]:
        """Plan topics one after the other; yields each with the pause until its next turn.

        After each topic that failed, the cluster is asked whether it answers at all. If not, the others fail at once.
        """
        may_be_down, fault = False, None
        for topic, turn in due.items():
            if is_stopping():
                return
            if may_be_down:
                fault = self._fault_of_cluster()
            if fault is None:
                pause = self._take(topic, turn, everything=everything)
                may_be_down = turn.error is not None
            else:
                pause, may_be_down = self._failed(topic, turn, fault), False
            yield topic, pause

    def _fault_of_cluster(self) -> Exception | None:
        """Why no broker of the cluster answers, or none accepts the user; None if one does."""
        try:
            self._made_planner().log.nodes(self.cluster)
        except Exception as exc:  # noqa: BLE001 - as of a plan
            return exc
        return None

    def _take(self, topic: Topic, turn: _Turn, *, everything: bool = False) -> float:
        """Plan a topic; returns the pause until its next turn, which is 0 if more manifests wait to be written."""
        try:
            plan = self._plan(topic, turn, everything=everything)
            turn.seen_at = turn.seen_at if plan.troubles else self.clock.now()
            self._tell(topic, turn, plan)
        except Exception as exc:  # noqa: BLE001 - no error of a topic may end the planning of others
            return self._failed(topic, turn, exc)
        pause = 0.0 if plan.totals.left_manifests else self._until_due(turn)
        if plan.troubles:
            return self._failed(topic, turn, plan.troubles[0], pause)
        turn.failures, turn.error = 0, None
        return pause

    def _until_due(self, turn: _Turn) -> float:
        """The pause until the next plan of a topic, or until its oldest record has waited long enough."""
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

        plan = self._made_planner().plan(topic, max_manifests=self.rules.max_manifests, is_due=is_due)
        turn.waits = turn.arrivals.see(plan.topic_id, plan.partitions, self.clock.now())
        return plan

    def _made_planner(self) -> KafkaPlanner:
        if self._planner is None:
            self._planner = self.new_planner()
        return self._planner

    def _failed(self, topic: Topic, turn: _Turn, error: Exception, pause: float | None = None) -> float:
        """Tell of a failure; returns the pause until the next plan.

        Args:
            topic: The topic.
            turn: What is known of it.
            error: Why it failed.
            pause: If all else was planned, and the error is noted; by default nothing was, and pauses grow.
        """
        turn.failures, turn.error = turn.failures + 1, error
        # What came since the last plan is not known, at least of some partition; it may wait since then.
        since = min(turn.seen_at, turn.waits_since or turn.seen_at)
        waited = (self.clock.now() - since).total_seconds()
        values, is_noted = {"TopicPlansFailed": 1.0, "TopicUnplannedSeconds": waited}, pause is not None
        if pause is None:
            first, longest = self.rules.plan_seconds, max(LONGEST_PAUSE_SECONDS, self.rules.plan_seconds)
            pause = pause_seconds(turn.failures, first_seconds=first, longest_seconds=longest, chance=1.0)
        log_event("topic.not_planned", topic=topic.uri, failures=turn.failures, pause_seconds=pause, error=error)
        try:
            if not is_noted:
                self.notes.failed(topic, described(error))
            self.metrics.emit(values)
            self.metrics.emit(values, about_topic(topic))
        except Exception as exc:  # noqa: BLE001 - as of a plan
            log_event("topic.not_counted", topic=topic.uri, error=exc)
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
        error = described(plan.troubles[0]) if plan.troubles else ""
        try:
            planned = self.work.offsets()
        except CompactorError as exc:
            log_event("topic.not_counted", topic=topic.uri, error=exc)
            if error:
                self.notes.failed(topic, error)
            return
        lag = Lag.of(topic, {**turn.waits, **turn.arrivals.held}, plan.partitions, planned, self.clock.now())
        self._emit(topic, lag)
        self.notes.planned(topic, plan.topic_id, lag.progress, plan.unseen, lag.planned_offsets, error)

    def _emit(self, topic: Topic, lag: Lag) -> None:
        self.metrics.emit(lag.metrics())
        self.metrics.emit(lag.metrics(), about_topic(topic))
        if self.rules.partition_metrics:
            for each in lag.partitions:
                about = {**about_topic(topic), "Partition": str(each.partition)}
                self.metrics.emit(lag.metrics_of(each), about)

"""The loop that plans topics: full manifests at once, others when their oldest record has waited long enough."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest

from compactor.adapters.memory.store import ManualClock, MemoryMetrics, MemoryStore
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.kafka.ports import LiveTopic
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.core.layout import Layout
from compactor.ledger.kafka.chains import Chains
from compactor.ledger.kafka.planned_work import PlannedWork
from compactor.ledger.kafka.topic_notes import TopicNotes, read_topic_progress
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.manifests.kafka.planner import KafkaPlanner
from compactor.manifests.kafka.topic_loop import LoopRules, TopicLoop
from tests.support.logged import events_logged
from tests.support.memory_kafka import MemoryKafka, MemoryPartition

LAYOUT = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s")
TOPIC, OTHER = Topic("main", "events"), Topic("main", "others")
VALUE = b'{"a": 1}'  # 8 bytes


@dataclass
class FailingKafka(MemoryKafka):
    """Clusters that answer with an error for some topics."""

    errors: dict[Topic, Exception] = field(default_factory=dict)
    down: Exception | None = None
    asked: list[Topic | str] = field(default_factory=list)

    def nodes(self, cluster: str) -> int:
        self.asked.append(cluster)
        if self.down is not None:
            raise self.down
        return 1

    def topic(self, topic: Topic) -> LiveTopic | None:
        self.asked.append(topic)
        if self.down is not None:
            raise self.down
        if topic in self.errors:
            raise self.errors[topic]
        return super().topic(topic)


class Scene:
    """A topic of two partitions, and a loop that plans it: 80 bytes a manifest, 300 s of waiting, every 30 s."""

    def __init__(self, *topics: Topic, **rules: Any) -> None:
        self.log, self.clock, self.metrics = FailingKafka(), ManualClock(), MemoryMetrics()
        self.store = MemoryStore(self.clock)
        ledger = Ledger(self.store, LAYOUT, self.clock, "run")
        self.state = State(store=self.store, layout=LAYOUT, ledger=ledger, clock=self.clock)
        planner = KafkaPlanner(
            state=self.state, log=self.log, allowed_prefixes=["kafka://main"], target_bytes=lambda: 80.0
        )
        given = {"plan_seconds": 30.0, "max_wait_seconds": 300.0, "max_manifests": 100, **rules}
        self.loop = TopicLoop(
            cluster="main",
            topics=topics or (TOPIC,),
            rules=LoopRules(**given),
            new_planner=lambda: planner,
            notes=TopicNotes(self.state, "run"),
            work=PlannedWork(self.state, ["kafka://main"]),
            metrics=self.metrics,
            clock=self.clock,
        )
        for topic in topics or (TOPIC,):
            self.log.create(topic, "one", 2)

    def partition(self, number: int, topic: Topic = TOPIC) -> MemoryPartition:
        return self.log.topics[topic][1][number]

    def after(self, seconds: float) -> float:
        """What a step says after so long."""
        self.clock.advance(seconds)
        return self.loop.step()

    def planned(self) -> list[list[KafkaRange]]:
        """The ranges of each manifest, in the order in which manifests were written."""
        infos = sorted(self.store.list(LAYOUT.manifests_folder), key=lambda info: info.modified_at)
        found = (self.store.read(info.uri) for info in infos)
        return [[KafkaRange.parse(file.uri) for file in Manifest.model_validate_json(data).files] for data in found]

    def offsets(self) -> list[int]:
        """How many offsets each manifest has."""
        return [sum(each.offsets for each in those) for those in self.planned()]


def test_a_full_manifest_is_written_at_once() -> None:
    """And what does not fill one waits for more."""
    scene = Scene()
    scene.partition(0).append(*[VALUE] * 25)
    assert scene.loop.step() == 30.0
    assert sum(scene.offsets()) in {10, 20}
    scene.after(30)
    assert sum(scene.offsets()) in {10, 20}


def test_a_quiet_topic_waits_no_longer_than_allowed() -> None:
    """The loop is back when the oldest record is due, and takes all partitions with it, in one manifest."""
    scene = Scene()
    scene.loop.step()
    scene.clock.advance(30)
    scene.partition(0).append(VALUE, at=scene.clock.now() - timedelta(seconds=10))
    assert scene.loop.step() == 30.0
    scene.partition(1).append(VALUE, at=scene.clock.now())
    waited = 10.0
    while not scene.planned():
        pause = scene.loop.step()
        if scene.planned():
            break
        scene.clock.advance(pause)
        waited += pause
    assert waited == 300.0
    assert scene.offsets() == [2]


def test_the_timestamps_of_producers_are_believed_only_as_far_as_they_can_be_true() -> None:
    """Records of yesterday that are copied now make no manifest each; those of tomorrow wait no longer than others."""
    scene = Scene()
    scene.loop.step()
    for number in range(8):
        scene.clock.advance(30)
        partition, past = number % 2, timedelta(days=1)
        scene.partition(partition).append(VALUE, at=scene.clock.now() + (past if partition else -past))
        scene.loop.step()
    assert scene.planned() == []
    scene.after(300)
    assert scene.offsets() == [8]


def test_old_records_are_due_at_the_start_of_a_job() -> None:
    """Their timestamps may be true then."""
    scene = Scene()
    scene.partition(0).append(VALUE, at=scene.clock.now() - timedelta(hours=1))
    scene.loop.step()
    assert scene.offsets() == [1]


def test_removed_records_are_planned_at_once() -> None:
    """So people get to know of them."""
    scene = Scene()
    scene.partition(0).append(*[VALUE] * 4)
    scene.loop.step()
    scene.partition(0).remove_before(2)
    with events_logged("topic.records_removed") as told:
        scene.after(30)
    assert scene.offsets() == [4]
    assert told == [{"topic": str(TOPIC), "ranges": 1, "offsets": 2}]


def test_a_topic_that_fails_holds_up_no_other() -> None:
    """It is tried again after longer and longer pauses, whatever the error, and goes on when the error is gone."""
    scene = Scene(TOPIC, OTHER)
    scene.log.errors[TOPIC] = AccessError("no right")
    with events_logged("topic.not_planned") as told:
        for _ in range(100):
            scene.partition(0, OTHER).append(*[VALUE] * 10)
            scene.clock.advance(scene.loop.step())
    assert [each["pause_seconds"] for each in told[:7]] == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    assert {each["topic"] for each in told} == {str(TOPIC)}
    assert len(scene.planned()) >= 100
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert (progress.failures, progress.seen_at, progress.error) == (len(told), None, "no right")
    seconds = [values["TopicUnplannedSeconds"] for values in scene.metrics.emitted if "TopicPlansFailed" in values]
    assert seconds[:4] == [0.0, 30.0, 90.0, 210.0]
    del scene.log.errors[TOPIC]
    scene.partition(0).append(*[VALUE] * 10)
    scene.after(600)
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert (progress.failures, progress.error, progress.partitions[0].planned_to) == (0, "", 10)


def test_a_planner_that_cannot_be_made_is_a_failure_of_the_topics() -> None:
    """Such as without the client's package."""
    scene = Scene()

    def fail() -> KafkaPlanner:
        raise SettingsError(["no client"])

    scene.loop.new_planner = fail
    with events_logged("topic.not_planned") as told:
        scene.loop.step()
    assert len(told) == 1


def test_lag_is_told() -> None:
    """What is in no manifest and what is not done, in metrics of all topics, of each, and of partitions if asked."""
    scene = Scene(partition_metrics=True)
    scene.loop.step()
    scene.clock.advance(30)
    scene.partition(0).append(*[VALUE] * 3, at=scene.clock.now() - timedelta(seconds=20))
    scene.partition(1).append(*[VALUE] * 12)
    scene.loop.step()
    of_p0, of_p1 = (
        sum(each.offsets for those in scene.planned() for each in those if each.partition == number)
        for number in (0, 1)
    )
    assert of_p0 + of_p1 > 0
    whole = scene.metrics.emitted[-1]
    assert whole["TopicOffsetsPlanned"] == of_p0 + of_p1
    assert whole["TopicOffsetsUnplanned"] == 15 - of_p0 - of_p1
    about = [each for each in scene.metrics.emitted_about if each[1] == whole]
    assert about[-1][0] == {"Topic": "main/events"}
    of_partitions = [each for each in scene.metrics.emitted_about if "Partition" in each[0]]
    assert of_partitions[-2] == (
        {"Topic": "main/events", "Partition": "0"},
        {
            "TopicOffsetsUnplanned": 3 - of_p0,
            "TopicUnplannedSeconds": 20.0 if of_p0 < 3 else 0.0,
            "TopicOffsetsPlanned": of_p0,
        },
    )
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert [(each.planned_to, each.end) for each in progress.partitions] == [(of_p0, 3), (of_p1, 12)]
    assert progress.planned_offsets == of_p0 + of_p1


def test_once_everything_is_planned() -> None:
    """Also what fills no manifest, and more than one plan may write; topics that fail are told."""
    scene = Scene(TOPIC, OTHER, max_manifests=1)
    scene.partition(0).append(*[VALUE] * 45)
    scene.log.errors[OTHER] = StoreUnavailable("brokers are down")
    assert {topic: str(error) for topic, error in scene.loop.plan_all().items()} == {OTHER: "brokers are down"}
    assert sum(scene.offsets()) == 45


TOPICS = [Topic("main", f"events-{number}") for number in range(50)]


@pytest.mark.parametrize("down", [StoreUnavailable("timed out"), AccessError("wrong password")])
def test_a_dead_cluster_is_asked_once_for_all_topics(down: Exception) -> None:
    """Each question waits for the whole time-out. All topics fail, and are planned when it answers again."""
    scene = Scene(*TOPICS)
    scene.log.down = down
    assert set(scene.loop.plan_all().items()) == {(topic, down) for topic in TOPICS}
    assert scene.log.asked == [TOPICS[0], "main"]
    scene.log.asked.clear()
    scene.loop.step()
    assert scene.log.asked == [TOPICS[0], "main"]
    progress = read_topic_progress(scene.state, TOPICS[-1])
    assert progress is not None
    assert (progress.failures, progress.error) == (2, str(down))
    scene.log.down = None
    for topic in TOPICS:
        scene.partition(0, topic).append(*[VALUE] * 10)
    scene.after(30)
    assert sum(scene.offsets()) == 500


def test_a_cluster_that_dies_between_two_topics_is_asked_once_more() -> None:
    """And a topic that fails beside others costs one short question."""
    scene = Scene(*TOPICS)
    scene.log.errors[TOPICS[0]] = StoreUnavailable("no leader")
    scene.log.errors[TOPICS[2]] = dies = StoreUnavailable("timed out")
    asked = scene.log.topic

    def topic(wanted: Topic) -> LiveTopic | None:
        scene.log.down = dies if wanted == TOPICS[2] else None
        return asked(wanted)

    scene.log.topic = topic  # type: ignore[method-assign]
    assert set(scene.loop.plan_all()) == {TOPICS[0], *TOPICS[2:]}
    assert scene.log.asked == [TOPICS[0], "main", TOPICS[1], TOPICS[1], TOPICS[2], "main"]


def test_an_error_behind_the_plan_is_one_of_the_topic() -> None:
    """What it wrote is there; other topics go on, and the topic has its turn again."""
    scene = Scene(TOPIC, OTHER)
    for topic in (TOPIC, OTHER):
        scene.partition(0, topic).append(*[VALUE] * 20)
    counted, calls = scene.loop.work.offsets, count()
    with patch.object(PlannedWork, "offsets", lambda _: counted_once(next(calls), counted)):
        with events_logged("topic.not_planned") as told:
            scene.loop.step()
        assert [each["topic"] for each in told] == [str(TOPIC)]
        scene.after(30)
    assert {each.topic for those in scene.planned() for each in those} == {TOPIC, OTHER}
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert progress.failures == 0


def test_what_planners_left_and_cannot_be_finished_is_told() -> None:
    """It counts as a failure of the topic, whose records are planned as ever, and it is over once it is gone."""
    scene = Scene()
    scene.log.create(TOPIC, "one", 1)
    scene.loop.step()
    damaged = f"{Chains(scene.state).drafts_folder(TOPIC, 'one')}2026-01-01-damaged.json"
    scene.store.put(damaged, b"{")
    for failures in (1, 2):
        scene.partition(0).append(*[VALUE] * 10)
        with events_logged("topic.not_planned") as told:
            assert scene.after(30) == 30.0
        assert [damaged in each["error"] for each in told] == [True]
        progress = read_topic_progress(scene.state, TOPIC)
        assert progress is not None
        assert (progress.failures, damaged in progress.error, progress.seen_at) == (failures, True, scene.clock.now())
    assert sum(scene.offsets()) == 20
    assert sum("TopicPlansFailed" in each for each in scene.metrics.emitted) == 2
    assert list(scene.loop.plan_all()) == [TOPIC]
    scene.store.delete([damaged])
    scene.after(30)
    assert scene.loop.plan_all() == {}
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert (progress.failures, progress.error) == (0, "")


def counted_once(call: int, counted: Callable[[], dict[tuple[Topic, int], int]]) -> dict[tuple[Topic, int], int]:
    if call == 0:
        raise ValueError("none that was expected")
    return counted()


def test_a_failure_that_cannot_be_noted_ends_no_turn() -> None:
    """It is in the log; the other topics have their turn."""
    scene = Scene(TOPIC, OTHER)
    scene.log.errors[TOPIC] = StoreUnavailable("no leader")
    scene.partition(0, OTHER).append(*[VALUE] * 20)
    with (
        patch.object(TopicNotes, "failed", side_effect=ValueError("none that was expected")),
        events_logged("topic.not_planned") as told,
        events_logged("topic.not_counted") as not_noted,
    ):
        assert scene.loop.step() == 30.0
    assert [each["topic"] for each in told + not_noted] == [str(TOPIC)] * 2
    assert {each.topic for those in scene.planned() for each in those} == {OTHER}


def test_a_stop_begins_no_other_topic() -> None:
    """It is asked for before each."""
    scene = Scene(TOPIC, OTHER)
    for topic in (TOPIC, OTHER):
        scene.partition(0, topic).append(*[VALUE] * 20)
    answers = iter([False, True])
    scene.loop.step(is_stopping=lambda: next(answers))
    assert {each.topic for those in scene.planned() for each in those} == {TOPIC}


def test_planned_work_is_counted_until_it_is_done() -> None:
    """A manifest is read once; what is gone from the prefix and is not in progress does not count."""
    scene = Scene()
    scene.partition(0).append(*[VALUE] * 20)
    scene.loop.plan_all()
    work = PlannedWork(scene.state, ["kafka://main"])
    assert work.offsets() == {(TOPIC, 0): 20}
    scene.store.delete([next(iter(scene.store.list(LAYOUT.manifests_folder))).uri])
    left = work.offsets()[TOPIC, 0]
    assert left == sum(scene.offsets()) < 20


def test_an_open_transaction_hides_no_backlog() -> None:
    """What it holds is in no manifest, however long it hangs, and waits since it was first seen to be held."""
    scene = Scene()
    scene.loop.step()
    scene.partition(0).undecided = 7
    scene.after(30)
    assert scene.metrics.emitted[-1]["TopicOffsetsUnplanned"] == 7
    scene.partition(0).undecided = 9
    assert scene.after(600) == 30
    lag = scene.metrics.emitted[-1]
    assert (lag["TopicOffsetsUnplanned"], lag["TopicUnplannedSeconds"]) == (9, 600)
    assert scene.planned() == []
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    first = progress.partitions[0]
    assert (first.planned_to, first.end, first.undecided) == (0, 0, 9)
    assert first.waits_since == scene.clock.now() - timedelta(seconds=600)
    scene.partition(0).undecided = 2
    scene.partition(0).append(*[VALUE] * 10)
    scene.after(30)  # decided: planned at once, as they fill a manifest, and another transaction holds the next ones
    assert scene.offsets() == [10]
    lag = scene.metrics.emitted[-1]
    assert (lag["TopicOffsetsUnplanned"], lag["TopicUnplannedSeconds"]) == (2, 0)


def test_a_partition_without_a_leader_is_told() -> None:
    """In the log, in the note and in the age that the alarm goes by; the others are planned, and it is, when it can."""
    scene = Scene()
    scene.loop.step()
    scene.partition(1).append(*[VALUE] * 10)
    scene.partition(1).is_offline = True
    for number in (1, 2, 3):
        scene.partition(0).append(*[VALUE] * 10)
        with events_logged("topic.not_planned") as told:
            assert scene.after(30) == 30.0
        assert ["partition 1 could not be asked" in each["error"] for each in told] == [True]
        progress = read_topic_progress(scene.state, TOPIC)
        assert progress is not None
        assert (progress.unseen, progress.failures, progress.seen_at) == ((1,), number, scene.clock.now())
        assert "LEADER_NOT_AVAILABLE" in progress.error
        assert scene.metrics.emitted[-1] == {"TopicPlansFailed": 1.0, "TopicUnplannedSeconds": 30.0 * number}
    assert sum(scene.offsets()) == 30
    scene.partition(1).is_offline = False
    scene.after(30)
    assert sum(scene.offsets()) == 40
    progress = read_topic_progress(scene.state, TOPIC)
    assert progress is not None
    assert (progress.unseen, progress.failures, progress.error) == ((), 0, "")

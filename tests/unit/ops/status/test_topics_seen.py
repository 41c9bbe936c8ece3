"""`status` and `report` with topics: how far behind planning is, from brokers if they answer, else from jobs' notes."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from compactor.adapters.memory.store import ManualClock, MemoryStore
from compactor.cli.ui.status_screen import screen
from compactor.cli.ui.words import topic_lines
from compactor.control.diagnosis.health import Condition
from compactor.core.errors import StoreUnavailable
from compactor.core.kafka.ports import LiveTopic
from compactor.core.kafka.ranges import Topic
from compactor.core.text.safe_text import Suggestions
from compactor.ops.report.period import Period
from compactor.ops.report.reader import ReportReader
from compactor.ops.report.verdict import judge
from compactor.ops.status.values import Status
from compactor.settings.settings import parse_settings
from compactor.wiring.job.app import App
from tests.support.memory_kafka import MemoryKafka
from tests.support.settings_files import folder_settings

TOPIC, OTHER = Topic("main", "events"), Topic("main", "others")
VALUE = b'{"a": 1}'


@dataclass
class FailingKafka(MemoryKafka):
    """Brokers that can be down, and count how often they are asked."""

    is_down: bool = False
    asked: list[Topic] = field(default_factory=list)

    def topic(self, topic: Topic) -> LiveTopic | None:
        self.asked.append(topic)
        if self.is_down:
            raise StoreUnavailable("no broker answers")
        return super().topic(topic)


class Scene:
    """A job that plans two topics, and what `status` says of them."""

    def __init__(self, tmp_path: Path) -> None:
        self.log, self.clock = FailingKafka(), ManualClock()
        self.store = MemoryStore(self.clock)
        for each in (TOPIC, OTHER):
            self.log.create(each, "one", 2)
        clusters = {"main": {"bootstrap.servers": "none:1"}}
        given = folder_settings(
            tmp_path,
            input={"allowed_prefixes": ["kafka://main"]},
            kafka={"clusters": clusters, "topics": [str(TOPIC), str(OTHER)]},
        )
        self.settings = parse_settings(given)
        self.late_seconds = self.settings.topic_late_seconds
        [self.task] = self.app().planning_tasks()

    def app(self) -> App:
        return App(self.settings, kafka=self.log, store=self.store, clock=self.clock)

    def plan(self, *, everything: bool = False) -> None:
        """Let the job plan once; it is the same job each time."""
        work = self.task.at_start if everything else self.task.run
        assert work is not None
        with suppress(StoreUnavailable):  # a run that is to end raises what of a topic failed
            work(lambda: False)

    def status(self) -> Status:
        return self.app().status_reader.read()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_brokers_have_is_shown(scene: Scene) -> None:
    """Beyond what is planned, with the age of the oldest record, and what is planned and not done."""
    scene.log.topics[TOPIC][1][0].append(*[VALUE] * 5)
    scene.plan(everything=True)
    scene.clock.advance(60)
    scene.log.topics[TOPIC][1][1].append(*[VALUE] * 7, at=scene.clock.now() - timedelta(seconds=30))
    scene.log.topics[TOPIC][1][0].append(VALUE)
    found, other = scene.status().topics
    assert (found.unplanned_offsets, found.worst_partition, found.worst_offsets) == (8, 1, 7)
    assert (found.unplanned_seconds, found.planned_offsets, found.not_asked) == (30.0, 5, "")
    assert not found.is_behind
    assert other.words == "all is in manifests"
    assert topic_lines([found]) == [
        "main/events: 8 offsets in no manifest, the oldest for 30 s; 5 planned and not done",
        "main/events: 7 of them in partition 1",
    ]


def test_the_age_of_a_record_is_that_which_jobs_noted(scene: Scene) -> None:
    """They know more of it than its timestamp."""
    scene.plan()
    scene.clock.advance(30)
    scene.log.topics[TOPIC][1][0].append(VALUE, at=scene.clock.now() - timedelta(days=9))
    scene.plan()
    scene.clock.advance(10)
    assert scene.status().topics[0].unplanned_seconds == 40.0


def test_what_an_open_transaction_holds_is_late_at_last(scene: Scene) -> None:
    """Whether brokers are asked or only the notes of jobs are to be had; the alarm goes by the same figure."""
    scene.log.topics[TOPIC][1][0].undecided = 5
    scene.plan()
    scene.clock.advance(scene.late_seconds + 1)
    scene.plan()
    for scene.log.is_down in (False, True):
        found = scene.status().topics[0]
        assert (found.unplanned_offsets, found.undecided_offsets, found.is_behind) == (5, 5, True)
        assert "5 offsets in no manifest, the oldest for" in found.words
        assert ", 5 behind an open transaction" in found.words
    assert judged(scene) == alarmed(scene)


def test_brokers_that_do_not_answer_hide_nothing(scene: Scene) -> None:
    """What jobs noted is shown, with its age and why; each cluster is asked once. Failures are late at last."""
    scene.plan()
    scene.log.topics[TOPIC][1][0].append(VALUE)
    scene.clock.advance(30)
    scene.log.is_down = True
    scene.plan()
    scene.clock.advance(scene.late_seconds)
    scene.log.asked.clear()
    found = scene.status()
    assert scene.log.asked == [TOPIC]
    assert [each.not_asked for each in found.topics] == ["no broker answers"] * 2
    assert [(each.failures, each.error) for each in found.topics] == [(1, "no broker answers")] * 2
    assert found.state.condition is Condition.TOPIC_BEHIND
    assert "main/events: as jobs noted; no broker answers" in topic_lines(found.topics)
    assert "no broker answers" in str(screen(found, width=100))


@pytest.mark.parametrize(("seconds", "is_late"), [(0.0, False), (1.0, True)])
def test_an_old_record_is_late(scene: Scene, seconds: float, is_late: bool) -> None:
    """Also while no job has ever planned the topic."""
    waited = timedelta(seconds=scene.late_seconds + seconds)
    scene.log.topics[TOPIC][1][0].append(VALUE, at=scene.clock.now() - waited)
    found = scene.status()
    assert (found.state.condition is Condition.TOPIC_BEHIND) == is_late
    assert found.topics[0].planned_at is None


def alarmed(scene: Scene) -> list[bool]:
    """Whether the control plane, which asks no brokers, finds topics behind; it checks once before."""
    watch = scene.app().topic_watch(may_note=True)
    return [each.is_behind for each in watch.seen(scene.clock.now())]


def judged(scene: Scene) -> list[bool]:
    return [each.is_behind for each in scene.status().topics]


def test_a_topic_that_no_job_ever_planned_is_behind(scene: Scene) -> None:
    """For `status` and the alarms alike, from when the control plane first expected it to be planned."""
    assert alarmed(scene) == judged(scene) == [False, False]
    scene.clock.advance(scene.late_seconds)
    scene.log.topics[TOPIC][1][0].append(VALUE, at=scene.clock.now() - timedelta(days=365))
    assert alarmed(scene) == judged(scene) == [False, False]
    scene.clock.advance(1)
    assert alarmed(scene) == judged(scene) == [True, True]
    assert "no job has planned it for 1" in scene.status().topics[1].words
    scene.plan()
    assert alarmed(scene) == judged(scene) == [False, False]


def test_a_topic_that_is_gone_is_behind_at_last(scene: Scene) -> None:
    """Both say so as long as it is in the settings; `status` says that brokers have none, and what was noted."""
    scene.log.topics[TOPIC][1][0].append(*[VALUE] * 5)
    scene.plan(everything=True)
    del scene.log.topics[TOPIC]
    scene.clock.advance(30)
    scene.plan()
    found = scene.status().topics[0]
    assert found.not_asked == "brokers have no topic of this name"
    assert (found.failures, found.planned_offsets) == (1, 5)
    assert alarmed(scene) == judged(scene) == [False, False]
    scene.clock.advance(scene.late_seconds + 1)
    assert alarmed(scene) == judged(scene) == [True, True]


def test_a_job_that_ended_leaves_topics_behind(scene: Scene) -> None:
    """Also if nothing new is there: `status` knows that, and the alarms do not, but both must say that no job plans."""
    scene.plan()
    scene.clock.advance(scene.late_seconds + 1)
    assert alarmed(scene) == judged(scene) == [True, True]


def test_the_timestamp_of_a_producer_makes_no_topic_late(scene: Scene) -> None:
    """A record that was not there when a job last planned came later, whatever it says."""
    scene.plan()
    scene.clock.advance(10)
    for partition in (0, 1):
        scene.log.topics[TOPIC][1][partition].append(VALUE, at=scene.clock.now() - timedelta(days=365))
    assert scene.status().topics[0].unplanned_seconds == 10.0
    assert alarmed(scene) == judged(scene) == [False, False]


def test_without_topics_nothing_is_asked(scene: Scene) -> None:
    """And nothing is shown."""
    kafka = scene.settings.kafka.model_copy(update={"topics": ()})
    object.__setattr__(scene.settings, "kafka", kafka)
    assert scene.status().topics == ()
    assert scene.log.asked == []


def test_a_partition_without_a_leader_is_told(scene: Scene) -> None:
    """By its number and why, whether brokers are asked or only the notes of jobs are to be had. It is late at last."""
    scene.plan()
    scene.log.topics[TOPIC][1][0].append(VALUE)
    scene.log.topics[TOPIC][1][1].is_offline = True
    found, other = scene.status().topics  # no job has planned it since
    assert (found.unseen_partitions, found.unplanned_offsets, found.not_asked) == ((1,), 1, "")
    assert "LEADER_NOT_AVAILABLE" in found.unseen_error
    assert f"main/events: {found.unseen_error}" in topic_lines([found])
    assert (other.unseen_partitions, other.not_asked, other.words) == ((), "", "all is in manifests")
    scene.plan(everything=True)
    assert scene.status().topics[0].words.startswith("all else is in manifests; not known of partition 1; ")
    scene.clock.advance(scene.late_seconds + 1)
    scene.plan()
    assert alarmed(scene) == judged(scene) == [True, False]
    scene.log.is_down = True
    noted = scene.status().topics[0]
    assert (noted.unseen_partitions, noted.unseen_error, noted.is_behind) == ((1,), noted.error, True)
    assert "partition 1 could not be asked: kafka://main/events: LEADER_NOT_AVAILABLE" in noted.error
    assert "not known of partition 1" in noted.words


def test_a_partition_that_no_job_could_see_is_not_young(scene: Scene) -> None:
    """What came while it had no leader waits since then, although a job planned the topic after that."""
    scene.plan()
    partition = scene.log.topics[TOPIC][1][1]
    partition.is_offline = True
    for _ in range(3):
        scene.clock.advance(60)
        scene.plan()
    partition.append(VALUE, at=scene.clock.now() - timedelta(days=1))
    partition.is_offline = False
    assert scene.status().topics[0].unplanned_seconds == 120.0


def test_a_damaged_record_of_one_partition_hides_no_other(scene: Scene) -> None:
    """Its partition is told, with the record; what the others have is shown."""
    for each in scene.log.topics[TOPIC][1]:
        each.append(*[VALUE] * 5)
    scene.plan(everything=True)
    links = [
        info.uri for info in scene.store.list(scene.app().layout.kafka_folder) if "events/one/1/links/" in info.uri
    ]
    scene.store.put(links[-1], b"{")
    scene.log.topics[TOPIC][1][0].append(*[VALUE] * 3)
    found, other = scene.status().topics
    assert (found.unseen_partitions, found.unplanned_offsets, found.not_asked) == ((1,), 3, "")
    assert links[-1] in found.unseen_error
    assert (other.unseen_partitions, other.not_asked) == ((), "")


def test_a_report_tells_what_was_noted(scene: Scene) -> None:
    """Without asking brokers; what is late is in its verdict."""
    scene.plan()
    scene.log.is_down = True
    scene.clock.advance(60)
    scene.plan()
    scene.clock.advance(scene.late_seconds)
    scene.log.asked.clear()
    app = scene.app()
    period = Period(scene.clock.now() - timedelta(hours=1), scene.clock.now())
    reader = ReportReader(app.state, app.registry, None, None, app.topic_watch())
    figures = reader.read(period, target_file_bytes=1, with_samples=False)
    assert scene.log.asked == []
    assert [each.failures for each in figures.topics] == [1, 1]
    points = judge(figures, None, Suggestions()).points
    assert {each.condition for each in points} == {Condition.TOPIC_BEHIND}

"""The shell of the control plane: sources fail alone, actions are taken once, people are notified once per change."""

import json
from typing import Any

import pytest

from compactor.adapters.memory.glue import MemoryGlue, MemoryNotifier, MemoryQueue
from compactor.adapters.memory.store import ManualClock, MemoryMetrics, MemoryStore
from compactor.control.actions import ActionKind
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.plane import Check, ControlPlane
from compactor.control.runs import JobState
from compactor.control.snapshot import QueueDepth, Refusals, Source
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore, ProcessName
from compactor.core.records import RunHeartbeat
from compactor.core.safe_text import visible
from compactor.ledger.backlog import Backlog
from compactor.ledger.heartbeat import Runs
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.settings.control_policy import Policy
from compactor.settings.settings import parse_settings
from compactor.telemetry.metrics import CATALOGUE
from compactor.wiring.control import ControlComponents
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, Harness

LETTER = (
    "1 S3 event is in the dead-letter queue; "
    "read one of them and the builder's log, fix the cause, then redrive the queue"
)
LAYOUT = Layout(manifests="/w/manifests", output="/w/output", state="/w/state")


class Machines:
    """Processes of other machines, which are unknown here."""

    def this(self) -> ProcessName:
        return ProcessName("lambda", 1)

    def is_gone(self, process: ProcessName) -> bool:  # noqa: ARG002 - a port's method
        return False


class BrokenQueue:
    """A queue that cannot be reached."""

    def depth(self) -> QueueDepth:
        raise StoreUnavailable("queue: away")

    def oldest_seconds(self, now: object) -> float | None:  # noqa: ARG002 - a port's method
        raise AccessError("age: denied")


class Scene:
    """A control plane over everything in memory.

    Args:
        store: What the control plane sees in place of the store itself.
        policy: The policy's numbers.
    """

    def __init__(self, store: ObjectStore | None = None, **policy: Any) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = store or self.memory
        self.glue = MemoryGlue(self.clock)
        self.queue, self.dead_letters = MemoryQueue(), MemoryQueue()
        self.notifier, self.metrics = MemoryNotifier(), MemoryMetrics()
        self.policy = Policy(**policy)

    def sources(self, **changes: Any) -> Sources:
        parts: dict[str, Any] = {
            "job": self.glue,
            "runs": Runs(self.store, LAYOUT, self.clock, Machines()),
            "queue": self.queue,
            "dead_letter_queue": self.dead_letters,
            "state": State(
                store=self.store,
                layout=LAYOUT,
                ledger=Ledger(self.store, LAYOUT, self.clock, "control"),
                clock=self.clock,
            ),
        }
        return Sources(**{**parts, **changes})

    def plane(self, **changes: Any) -> ControlPlane:
        notices = Notices(notifier=self.notifier, store=self.store, uri=LAYOUT.notices, job_name="job")
        return ControlPlane(
            sources=self.sources(**changes),
            policy=self.policy,
            notices=notices,
            metrics=self.metrics,
            clock=self.clock,
        )

    def check(self, **changes: Any) -> Check:
        return self.plane(**changes).check()

    def minutes(self, number: int, *, alive: bool = True) -> list[Check]:
        """Check once a minute, with or without a heartbeat from the job."""
        checks = []
        for _ in range(number):
            self.clock.advance(60)
            if alive:
                self.beat()
            checks.append(self.check())
        return checks

    def beat(self, run_id: str = "a") -> None:
        """Write a run's heartbeat."""
        now = self.clock.now()
        beat = RunHeartbeat(run_id=run_id, host="glue", process_id=7, started_at=now, heartbeat_at=now)
        self.memory.put(LAYOUT.run(run_id), beat.model_dump_json().encode())

    def deliver(self, name: str = "m1.json") -> None:
        self.memory.put(LAYOUT.manifests_folder + name, b"{}")


def kinds(checked: Check) -> list[str]:
    return [action.kind for action in checked.actions if action.kind is not ActionKind.ALARM]


def test_a_job_that_is_down_is_started_once() -> None:
    """The first check starts a run, the next ones leave it alone."""
    scene = Scene()
    first = scene.check()
    assert first.done == ("run jr_000001 was started: no run is on record",)
    scene.minutes(5)
    assert scene.glue.started == ["jr_000001"]
    assert [run.state for run in scene.glue.living()] == [JobState.RUNNING]


def test_a_preview_changes_nothing() -> None:
    """A preview says what would be done; it starts, writes, measures and notifies nothing."""
    scene = Scene()
    seen = scene.plane().preview()
    assert kinds(seen) == ["start"]
    assert (scene.glue.started, list(scene.memory.list("/w/")), scene.notifier.messages) == ([], [], [])
    assert scene.metrics.emitted == []


def test_another_start_came_first() -> None:
    """A start that meets a run is an outcome: nothing is done, nothing failed, no message is sent."""

    class StaleGlue(MemoryGlue):
        """Its history does not show yet what was just started."""

        def list(self, since: object) -> Any:  # noqa: ARG002 - a port's method
            return []

    scene = Scene()
    scene.glue = StaleGlue(scene.clock)
    scene.glue.start()
    checked = scene.check()
    assert (kinds(checked), checked.done, checked.failed, scene.notifier.messages) == (["start"], (), (), [])
    assert scene.metrics.emitted[-1]["Restarts"] == 0


def test_everything_is_seen() -> None:
    """What is waiting, in flight, dead, alive and committed is all in the snapshot."""
    scene = Scene()
    scene.queue.waiting, scene.queue.in_flight, scene.queue.age_seconds = 5, 2, 33.0
    scene.dead_letters.waiting = 1
    scene.memory.put(LAYOUT.keep_marker, b"")
    scene.deliver()
    scene.clock.advance(90)
    scene.deliver("m2.json")
    scene.beat()
    sources = scene.sources()
    sources.runs.ask_to_stop("a")
    seen = sources.snapshot(scene.clock.now(), scene.policy)
    assert (seen.queue, seen.queue_oldest_seconds, seen.dead_letters) == (QueueDepth(5, 2), 33.0, 1)
    assert seen.backlog == Backlog(2, 90.0)
    assert seen.heartbeats is not None
    assert [(each.run_id, each.asked_to_stop_at) for each in seen.heartbeats.living] == [("a", scene.clock.now())]
    assert seen.heartbeats.last_at == scene.clock.now()
    assert seen.unknown == {}


def test_commits_are_seen() -> None:
    """The ledger's latest commits are part of the snapshot."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    scene = Scene(harness.store)
    [commit] = scene.sources().snapshot(scene.clock.now(), scene.policy).recent or ()
    assert commit.manifest_id == "m1"


def test_an_empty_queue_has_no_age() -> None:
    """The age is measured minutes late; of a queue that is empty by now it is 0."""
    scene = Scene()
    scene.queue.age_seconds = 500.0
    assert scene.sources().snapshot(scene.clock.now(), scene.policy).queue_oldest_seconds == 0.0
    nothing = scene.sources(queue=None, dead_letter_queue=None).snapshot(scene.clock.now(), scene.policy)
    assert (nothing.queue, nothing.queue_oldest_seconds, nothing.dead_letters) == (None, None, None)


def test_each_source_fails_alone() -> None:
    """What cannot be read is unknown, with its reason, and everything else is known and measured."""
    scene = Scene()
    scene.deliver()
    with scene.glue.trouble():
        checked = scene.check(queue=BrokenQueue(), dead_letter_queue=BrokenQueue())
    unknown = {Source.RUNS, Source.QUEUE, Source.QUEUE_AGE, Source.DEAD_LETTERS}
    assert set(checked.snapshot.unknown) == unknown
    assert checked.snapshot.backlog is not None
    [values] = scene.metrics.emitted
    assert values == {"ManifestsPending": 1.0, "OldestManifestAgeSeconds": 0.0, "Restarts": 0.0}
    assert kinds(checked) == ["wait"]


def test_a_store_that_is_away() -> None:
    """Without the store nothing but Glue and queues is known; a job that is down is started all the same."""
    scene = Scene()
    faulty = FaultyStore(scene.memory)
    for method in ("list", "read", "put", "stat"):
        for call in range(1, 40):
            faulty.unavailable_at(call, method)
    scene.store = faulty
    checked = scene.check()
    of_the_store = {Source.HEARTBEATS, Source.MANIFESTS, Source.LEDGER, Source.BREAKER, Source.REFUSALS}
    assert set(checked.snapshot.unknown) == of_the_store
    assert kinds(checked) == ["start"]
    assert scene.metrics.emitted[-1].keys() >= {"JobState", "QueueDepth", "Restarts"}
    [(_, text)] = scene.notifier.messages
    assert "run jr_000001 was started" in text
    assert "Wrong now" not in text, "what people know already cannot be read, so alarms would repeat each minute"


def test_a_hang_is_ended() -> None:
    """A run without heartbeats is stopped while work waits, and another one takes over."""
    scene = Scene()
    scene.check()
    scene.minutes(20)
    scene.deliver()
    checks = scene.minutes(8, alive=False)
    assert [kinds(checked)[0] for checked in checks].count("stop") == 1
    scene.minutes(3)
    assert scene.glue.started == ["jr_000001", "jr_000002"]


def test_a_drain_asks_before_it_stops() -> None:
    """A run that is to end is asked once; only when it does not heed that for long is it stopped."""
    scene = Scene(mode="never", drain_seconds=300.0)
    run_id = scene.glue.start()
    checks = scene.minutes(9)
    assert kinds(checks[0]) == ["ask_to_stop"]
    assert scene.memory.stat(LAYOUT.stop_request("a")) is not None
    assert [kinds(checked) for checked in checks[1:5]] == [["wait"]] * 4
    assert kinds(checks[5]) == ["stop"]
    assert checks[5].done[0].startswith(f"Glue was told to stop run {run_id}: run {run_id} was asked to stop 5 min")
    assert scene.glue.living() == []


def test_the_breaker_can_be_closed() -> None:
    """After too many failures nothing is started, until an operator closes the breaker."""
    scene = Scene(breaker_failures=2, backoff_first_seconds=1.0)
    for _ in range(2):
        scene.check()
        scene.glue.end(scene.glue.started[-1], JobState.FAILED, "boom")
        scene.clock.advance(120)
    checked = scene.check()
    assert kinds(checked) == ["wait"]
    assert "crash_loop" in checked.alarms
    assert scene.metrics.emitted[-1]["JobState"] == -1
    scene.sources().close_breaker(scene.clock.now())
    checked = scene.check()
    assert kinds(checked) == ["start"]
    assert "crash_loop" not in checked.alarms


def test_a_damaged_order_to_close_is_unknown() -> None:
    """An order that cannot be read closes nothing, and is an alarm."""
    scene = Scene()
    scene.memory.put(LAYOUT.breaker_closed, b"{")
    assert "unknown_breaker" in scene.check().alarms


def test_what_fails_is_notified_and_tried_again() -> None:
    """A start that Glue refuses is notified once, and tried again a minute later."""

    class FullGlue(MemoryGlue):
        """An account without room."""

        def start(self) -> str | None:
            raise AccessError("Glue job x: ResourceNumberLimitExceededException: too many")

    scene = Scene()
    scene.glue = FullGlue(scene.clock)
    checks = scene.minutes(3, alive=False)
    assert [kinds(checked) for checked in checks] == [["start"]] * 3
    assert checks[0].failed == ("start failed: Glue job x: ResourceNumberLimitExceededException: too many",)
    assert len(scene.notifier.messages) == 1
    scene.glue = MemoryGlue(scene.clock)
    scene.minutes(1, alive=False)
    assert "Right again" in scene.notifier.messages[-1][1]


def test_starts_that_glue_refuses_again_and_again_are_an_alarm() -> None:
    """Glue counts a run that it does not list: each start is refused. A preview says so, and a run ends it."""

    class HeldGlue(MemoryGlue):
        def start(self) -> str | None:
            return None

    scene = Scene()
    scene.glue = HeldGlue(scene.clock)
    assert all(not each.alarms for each in scene.minutes(5, alive=False))
    scene.clock.advance(60)
    told = scene.plane().preview()
    assert "Glue has refused 5 starts in a row for 5 min" in told.alarms["starts_refused"]
    assert scene.check().alarms.keys() == {"starts_refused"}
    scene.glue = MemoryGlue(scene.clock)
    assert [scene.minutes(1, alive=False)[0].done, scene.minutes(1)[0].alarms] == [
        ("run jr_000001 was started: no run is on record",),
        {},
    ]
    assert scene.plane().preview().snapshot.refusals_now is None


def test_a_deployment_closes_the_breaker() -> None:
    """A crash loop is down to one trial an hour; the definition of the job changes, and the next check starts it."""
    scene = Scene(breaker_failures=2)
    for _ in range(2):
        [run_id] = [run.run_id for run in scene.glue.living()] or [scene.check().done[0].split()[1]]
        scene.glue.end(run_id, JobState.FAILED)
        scene.clock.advance(121)
    assert "crash_loop" in scene.check().alarms
    assert scene.glue.living() == []
    scene.glue.definition_changed_at = scene.clock.now()
    checked = scene.check()
    assert (kinds(checked), checked.alarms) == (["start"], {})
    assert len(scene.glue.living()) == 1


def test_the_definition_is_asked_for_only_after_a_failure() -> None:
    """GetJob is a call a minute that decides nothing as long as no failed run counts."""

    class AskedGlue(MemoryGlue):
        asked = 0

        def defined_at(self) -> Any:
            self.asked += 1
            return super().defined_at()

    scene = Scene()
    scene.glue = glue = AskedGlue(scene.clock)
    scene.check()
    scene.minutes(40)
    assert glue.asked == 0
    glue.end(glue.started[-1], JobState.FAILED)
    scene.minutes(3, alive=False)
    assert glue.asked == 3, "it delays the next start, and then counts until that run has worked for a while"
    scene.minutes(40)
    before = glue.asked
    scene.minutes(5)
    assert glue.asked == before
    assert before < 40


def test_people_are_notified_once_per_change() -> None:
    """A message is sent when an alarm comes and when it goes, not in between, however its figures change."""
    scene = Scene()
    scene.check()
    scene.minutes(2)
    scene.notifier.messages.clear()
    scene.dead_letters.waiting = 1
    scene.minutes(2)
    scene.dead_letters.waiting = 7
    scene.minutes(2)
    [(subject, text)] = scene.notifier.messages
    assert subject == f"job: {LETTER}"
    assert text == f"Wrong now:\n- {LETTER}"
    scene.dead_letters.waiting = 0
    scene.minutes(2)
    assert [subject for subject, _ in scene.notifier.messages[1:]] == ["job: all is well again"]
    assert scene.notifier.messages[1][1].startswith("Right again:\n- 1 S3 event")


def test_what_cannot_be_read_is_told_if_it_lasts() -> None:
    """One check that Glue throttles is no news; two in a row are, and what was wrong before does not count as over."""
    scene = Scene()
    scene.check()
    scene.minutes(2)
    scene.dead_letters.waiting = 1
    scene.minutes(1)
    scene.notifier.messages.clear()
    for _ in range(3):
        with scene.glue.trouble():
            scene.minutes(1)
        scene.minutes(1)
    assert scene.notifier.messages == []
    with scene.glue.trouble():
        checks = [*scene.minutes(3), scene.check(dead_letter_queue=BrokenQueue())]
    assert all("unknown_runs" in each.alarms for each in checks)
    [(_, text)] = scene.notifier.messages
    assert text.startswith("Wrong now:\n- the run history could not be read")
    assert LETTER in text
    with scene.glue.trouble():  # which says nothing of the queue
        scene.dead_letters.waiting = 0
        scene.minutes(1)
        assert "Right again:\n- 1 S3 event" in scene.notifier.messages.pop()[1]
        scene.dead_letters.waiting = 1
        scene.minutes(1)
        scene.notifier.messages.pop()
    scene.minutes(1)
    assert len(scene.notifier.messages) == 2
    assert "Right again:\n- the run history" in scene.notifier.messages[-1][1]
    assert f"Still wrong:\n- {LETTER}" in scene.notifier.messages[-1][1]


def test_an_alarm_of_the_runs_is_not_over_while_they_cannot_be_read() -> None:
    """A crash loop whose runs Glue does not show for a while is not told as over."""
    scene = Scene(breaker_failures=2, backoff_first_seconds=1.0)
    for _ in range(2):
        scene.check()
        scene.glue.end(scene.glue.started[-1], JobState.FAILED, "boom")
        scene.clock.advance(120)
    assert "crash_loop" in scene.check().alarms
    scene.notifier.messages.clear()
    with scene.glue.trouble():
        scene.minutes(3, alive=False)
    scene.minutes(1, alive=False)
    lasting, back = (text for _, text in scene.notifier.messages)
    assert "Right again" not in lasting
    assert "Still wrong:\n- 2 runs failed in a row" in lasting
    assert "Right again:\n- the run history could not be read" in back
    assert "Still wrong:\n- 2 runs failed in a row" in back


def test_refused_starts_are_over_with_the_start_that_is_accepted() -> None:
    """A job that is deleted later takes its runs with it, and no one hears again of refusals of long ago."""

    class HeldGlue(MemoryGlue):
        def start(self) -> str | None:
            return None

    scene = Scene()
    scene.glue = HeldGlue(scene.clock)
    scene.minutes(8, alive=False)
    scene.glue = MemoryGlue(scene.clock)
    assert "starts_refused" not in scene.minutes(2, alive=False)[-1].alarms
    scene.glue = MemoryGlue(scene.clock)  # made anew, without a history
    assert scene.check().alarms == {}
    assert scene.plane().preview().snapshot.refusals is None


def test_a_record_of_refusals_that_cannot_be_ended() -> None:
    """The start counts all the same."""
    scene = Scene()
    scene.sources().keep_refusals(Refusals(2, scene.clock.now()))
    faulty = FaultyStore(scene.memory)
    faulty.unavailable_at(1, "put")
    scene.store = faulty
    checked = scene.check()
    assert (checked.done, checked.failed) == (("run jr_000001 was started: no run is on record",), ())


def test_a_message_that_did_not_go_out_is_repeated() -> None:
    """A message that could not be sent is sent at the next check."""
    scene = Scene()
    scene.check()

    class DeadTopic:
        def tell(self, subject: str, text: str) -> None:
            raise StoreUnavailable(f"topic away: {subject} {text}")

    topic, scene.notifier = scene.notifier, DeadTopic()  # type: ignore[assignment]
    scene.dead_letters.waiting = 1
    scene.minutes(1)
    scene.notifier = topic
    topic.messages.clear()
    scene.minutes(2)
    assert len(topic.messages) == 1


def test_a_damaged_note_of_what_was_told() -> None:
    """Without a readable record of what was sent, alarms are sent once more."""
    scene = Scene()
    scene.check()
    scene.dead_letters.waiting = 1
    scene.minutes(1)
    scene.memory.put(LAYOUT.notices, b"{")
    scene.notifier.messages.clear()
    scene.minutes(2)
    assert len(scene.notifier.messages) == 1


def test_measurements() -> None:
    """All that is known is measured, under names of the catalogue, and each start is counted."""
    scene = Scene()
    scene.queue.waiting, scene.queue.in_flight, scene.queue.age_seconds = 5, 2, 33.0
    scene.check()
    scene.minutes(2)
    first, _, last = scene.metrics.emitted
    assert set(last) <= set(CATALOGUE)
    assert (first["Restarts"], last["Restarts"]) == (1, 0)
    assert (first["JobState"], last["JobState"]) == (0, 2)
    assert (last["QueueDepth"], last["QueueOldestAgeSeconds"], last["DeadLetterDepth"]) == (7, 33.0, 0)


def settings(**control: object) -> Any:
    places = {place: f"/w/{place}" for place in ("manifests", "output", "state")}
    return parse_settings({"paths": places, "input": {"allowed_prefixes": ["/w/raw"]}, "control": control})


def test_parts_from_the_settings() -> None:
    """The settings say which queues and which topic there are; parts that are given are used."""
    scene = Scene()
    parts = ControlComponents(settings(), clock=scene.clock, store=scene.memory, job=scene.glue, metrics=scene.metrics)
    assert (parts.sources.queue, parts.sources.dead_letter_queue) == (None, None)
    assert parts.plane.check().done
    assert scene.glue.started == ["jr_000001"]
    assert scene.metrics.emitted


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("maintenance_window", "Sunday", "a day and an hour in UTC as Glue writes them, such as Sun:10, or empty"),
        ("mode", "sometimes", "'always', 'on_work' or 'never'"),
        ("hang_seconds", 10.0, "at least 60.0"),
        ("breaker_failures", 0, "at least 1"),
    ],
)
def test_settings_that_are_no_policy(key: str, value: object, expected: str) -> None:
    """A policy that cannot be is refused with the key, the value and what was expected."""
    with pytest.raises(SettingsError) as caught:
        settings(**{key: value})
    [fault] = caught.value.faults
    assert fault == f"control.{key}: {json.dumps(value)} -> expected {expected}"


@pytest.mark.parametrize("words", ["Java heap space", "", "of \x1b]0;x\x07"])
def test_the_reason_of_a_restart_is_in_the_message(words: str) -> None:
    """People read why a run was started, with Glue's own words about the last one."""
    scene = Scene()
    scene.check()
    scene.glue.end("jr_000001", JobState.FAILED, words)
    scene.minutes(2, alive=False)
    subject, text = scene.notifier.messages[-1]
    assert subject.startswith("job: run jr_000002 was started")
    assert f"ended 1 min ago as FAILED, after 0 s{f': {visible(words)}' if words else ''}" in text


def test_a_check_without_a_notifier_leaves_the_record_of_what_was_told() -> None:
    """Without a topic, as from a terminal, the record of what was sent stays, so that it is sent once."""
    scene = Scene()
    alarms = {"events_dead_lettered": "3 S3 events are in the dead-letter queue"}
    told = Notices(notifier=scene.notifier, store=scene.store, uri=LAYOUT.notices, job_name="job")
    silent = Notices(notifier=None, store=scene.store, uri=LAYOUT.notices, job_name="job")
    silent.tell([], alarms)
    assert scene.store.stat(LAYOUT.notices) is None
    told.tell([], alarms)
    silent.tell([], {})
    told.tell([], alarms)
    assert len(scene.notifier.messages) == 1

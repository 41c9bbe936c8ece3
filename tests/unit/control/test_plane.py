"""The shell of the control plane: sources fail alone, and actions are taken once."""

import json
from typing import Any

import pytest

from compactor.control.snapshot import JobState, QueueDepth, Source
from compactor.core.errors import AccessError, CredentialsMissing, SettingsError
from compactor.ledger.backlog import WaitingManifests
from compactor.settings.settings import parse_settings
from compactor.telemetry.metrics import CATALOGUE
from compactor.wiring.control import control_plane
from tests.support.control_scene import LAYOUT, BrokenQueue, Scene, kinds
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, Harness
from tests.support.memory_glue import MemoryGlue


def test_a_job_that_is_down_is_started_once() -> None:
    """The first check starts a run, the next ones leave it alone."""
    scene = Scene()
    first = scene.check()
    assert first.done == ("run jr_000001 was started: no run on record",)
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
    assert seen.backlog == WaitingManifests(2, 90.0)
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


def test_no_credentials() -> None:
    """Nothing can be known then, so the check fails with one message."""
    scene = Scene()

    def refuse(_since: object) -> None:
        raise CredentialsMissing("Glue: no AWS credentials")

    scene.glue.list = refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(CredentialsMissing):
        scene.check()


def test_a_store_that_is_away() -> None:
    """Without the store nothing but Glue and queues is known; a job that is down is started all the same."""
    scene = Scene()
    faulty = FaultyStore(scene.memory)
    for method in ("list", "read", "put", "stat"):
        for call in range(1, 40):
            faulty.unavailable_at(call, method)
    scene.store = faulty
    checked = scene.check()
    of_the_store = {Source.HEARTBEATS, Source.MANIFESTS, Source.LEDGER, Source.BREAKER, Source.SEEN}
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


def test_a_slow_start_is_waited_for() -> None:
    """A run that is STARTING for 40 minutes has its whole grace from then on; only then is it stopped for silence."""
    scene = Scene()
    scene.glue.starting_seconds = 40 * 60
    scene.check()
    scene.deliver()
    checks = scene.minutes(40 + 9, alive=False)
    assert {kinds(each)[0] for each in checks} == {"wait"}
    assert "run jr_000001 has been RUNNING for 9 min and was requested 49 min ago" in checks[-1].actions[0].reason
    assert not any("no_heartbeat" in each.alarms for each in checks)
    assert "stop" in {kinds(each)[0] for each in scene.minutes(2, alive=False)}


def test_a_start_that_does_not_end() -> None:
    """A run that is STARTING for over an hour is stopped, and the next one begins after a pause."""
    scene = Scene()
    scene.glue.starting_seconds = 6 * 3600
    scene.check()
    checks = scene.minutes(61, alive=False)
    assert [kinds(each)[0] for each in checks].count("stop") == 1
    scene.glue.starting_seconds = 60
    scene.minutes(4, alive=False)
    assert scene.glue.started == ["jr_000001", "jr_000002"]
    assert [run.state for run in scene.glue.living()] == [JobState.RUNNING]


def test_each_state_is_noted_once() -> None:
    """A check writes only when the run came into another state; a preview never does."""
    scene = Scene()
    scene.check()
    scene.clock.advance(30)
    scene.plane().preview()
    assert scene.memory.stat(LAYOUT.job_seen) is None
    scene.check()
    first = scene.memory.read(LAYOUT.job_seen)
    scene.clock.advance(30)
    scene.minutes(3)
    [run_id, states] = (json.loads(scene.memory.read(LAYOUT.job_seen))[key] for key in ("run_id", "since_by_state"))
    assert (run_id, [*states]) == ("jr_000001", ["STARTING", "RUNNING"])
    assert states["STARTING"] == json.loads(first)["since_by_state"]["STARTING"]
    modified = scene.memory.stat(LAYOUT.job_seen)
    scene.minutes(3)
    assert scene.memory.stat(LAYOUT.job_seen) == modified


def test_a_state_that_cannot_be_noted() -> None:
    """People hear of it, and the next check notes it."""
    scene = Scene()
    scene.check()
    faulty = FaultyStore(scene.memory)
    faulty.unavailable_at(1, "put")
    scene.store = faulty
    scene.clock.advance(60)
    [fault] = scene.check().failed
    assert fault.startswith("failed to record that run jr_000001 is RUNNING: ")
    assert scene.check().failed == ()
    assert scene.memory.stat(LAYOUT.job_seen) is not None


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
        ("run jr_000001 was started: no run on record",),
        {},
    ]
    assert scene.plane().preview().snapshot.refused_since is None


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
    plane = control_plane(settings(), clock=scene.clock, store=scene.memory, job=scene.glue, metrics=scene.metrics)
    assert (plane.sources.queue, plane.sources.dead_letter_queue) == (None, None)
    assert plane.check().done
    assert scene.glue.started == ["jr_000001"]
    assert scene.metrics.emitted


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("maintenance_window", "Sunday", "a day and an hour in UTC as Glue writes them, such as Sun:10, or empty"),
        ("mode", "sometimes", "'always', 'on_work' or 'never'"),
    ],
)
def test_settings_that_are_no_policy(key: str, value: object, expected: str) -> None:
    """A policy that cannot be is refused with the key, the value and what was expected."""
    with pytest.raises(SettingsError) as caught:
        settings(**{key: value})
    [fault] = caught.value.faults
    assert fault == f"control.{key}: {json.dumps(value)} -> expected {expected}"

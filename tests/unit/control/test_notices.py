"""What the control plane tells people: once per change, and only what lasts."""

import pytest

from compactor.control.notices import Notices
from compactor.control.snapshot import JobSeen, JobState
from compactor.core.errors import StoreUnavailable
from compactor.core.text.safe_text import visible
from tests.support.control_scene import LAYOUT, BrokenQueue, Scene
from tests.support.fakes import FaultyStore
from tests.support.memory_glue import MemoryGlue

LETTER = (
    "1 S3 event is in the dead-letter queue; "
    "read one of them and the builder's log, fix the cause, then redrive the queue"
)


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
    assert scene.plane().preview().snapshot.refused_since is None


def test_a_record_of_refusals_that_cannot_be_ended() -> None:
    """The start counts all the same."""
    scene = Scene()
    scene.sources().keep_seen(JobSeen(refused_starts=2, refused_since=scene.clock.now()))
    faulty = FaultyStore(scene.memory)
    faulty.unavailable_at(1, "put")
    scene.store = faulty
    checked = scene.check()
    assert (checked.done, checked.failed) == (("run jr_000001 was started: no run on record",), ())


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

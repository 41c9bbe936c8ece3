"""How fast planned manifests are released: live manifests keep their latency, and the job is not left idle."""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.core.layout import KEEP_MARKER
from compactor.ledger.backlog import Backlog
from compactor.sources.inventory.planning import Pace, PacedGate
from tests.support.harness import Harness

START = datetime(2026, 1, 1, tzinfo=UTC)
SLA_SECONDS = 900.0
POLL_SECONDS = 10.0
DAY_SECONDS = 86_400.0


@dataclass
class Job:
    """A job of some slots that takes manifests in their order; time goes on in polls.

    Attributes:
        waiting: When each arrived, and whether it is live.
        busy: When each manifest in work will be done, and when it arrived.
        live_waits: For each live manifest that was begun, how long it waited.
    """

    slots: int
    seconds: float
    waiting: deque[tuple[float, bool]] = field(default_factory=deque)
    busy: list[tuple[float, float]] = field(default_factory=list)
    live_waits: list[float] = field(default_factory=list)
    idle_seconds: float = 0.0
    done: int = 0

    def work(self, now: float) -> None:
        """Let the job do what it can by now."""
        self.done += sum(end <= now for end, _ in self.busy)
        self.busy = [each for each in self.busy if each[0] > now]
        while self.waiting and len(self.busy) < self.slots:
            arrived, is_live = self.waiting.popleft()
            self.busy.append((now + self.seconds, arrived))
            self.live_waits += [now - arrived] if is_live else []
        self.idle_seconds += POLL_SECONDS * (self.slots - len(self.busy)) / self.slots

    def backlog(self, now: float) -> Backlog:
        arrived = [each for each, _ in self.waiting] + [each for _, each in self.busy]
        return Backlog(len(arrived), now - min(arrived, default=now))


def day(job: Job, *, live_every: float, pace: Pace | None) -> Job:
    """One day of a job with live manifests, and as many planned ones as are let in; all at once without rules."""
    chance, next_live = random.Random(7), 0.0
    job.waiting.extend([(0.0, False)] * (0 if pace else 2000))
    for step in range(round(DAY_SECONDS / POLL_SECONDS)):
        now = step * POLL_SECONDS
        while next_live <= now:
            job.waiting.append((now, True))
            next_live += chance.expovariate(1 / live_every)
        job.work(now)
        if pace:
            moment = START + timedelta(seconds=now)
            allowed = pace.allowed(job.backlog(now), moment)
            pace.note_released(allowed, moment)
            job.waiting.extend([(now, False)] * allowed)
    job.live_waits += [DAY_SECONDS - arrived for arrived, is_live in job.waiting if is_live]
    return job


def p99(waits: Sequence[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)]


@pytest.mark.parametrize("seconds", [5, 20, 60, 180])
def test_a_day_beside_live_data(seconds: float) -> None:
    """Live manifests wait little longer than alone, and the job is busy; without a pace they wait beyond the SLA."""
    pace, live_every = Pace(slots=2, most_waiting=10, most_age_seconds=SLA_SECONDS / 2), seconds * 2
    alone = day(Job(slots=2, seconds=seconds), live_every=live_every, pace=Pace(2, 0, 0.0))
    paced = day(Job(slots=2, seconds=seconds), live_every=live_every, pace=pace)
    assert p99(paced.live_waits) <= p99(alone.live_waits) + max(seconds, POLL_SECONDS) * 2
    assert paced.idle_seconds < DAY_SECONDS * 0.1
    assert paced.done > alone.done * 1.7
    flooded = day(Job(slots=2, seconds=seconds), live_every=live_every, pace=None)
    assert max(flooded.live_waits) > 2 * SLA_SECONDS


def test_live_data_that_fills_the_job() -> None:
    """Where live manifests need all of the job, planned ones wait."""
    pace = Pace(slots=2, most_waiting=4, most_age_seconds=100)
    job = day(Job(slots=2, seconds=60), live_every=30, pace=pace)
    live = round(DAY_SECONDS / 30)
    assert len(job.live_waits) >= live * 0.95
    assert job.done - len(job.live_waits) < live * 0.1


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1000), st.integers(0, 5000)), max_size=60),
    st.integers(1, 8),
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(1, 1000)),
)
@example([(1, 500.0, 0)], 4, 20, None)  # late, while most of the slots are free
def test_bounds(looks: list[tuple[int, float, int]], slots: int, most_waiting: int, per_hour: int | None) -> None:
    """Never more than the bound waits, nothing is added to what is late, and an hour has no more than the rate."""
    pace = Pace(slots, most_waiting, 100.0, per_hour)
    now, released = START, []
    for manifests, age, seconds in looks:
        now += timedelta(seconds=seconds)
        backlog = Backlog(manifests, age if manifests else 0.0)
        allowed = pace.allowed(backlog, now)
        assert 0 <= allowed <= max(0, most_waiting - manifests)
        assert not (pace.is_late(backlog) and allowed)
        pace.note_released(allowed, now)
        released += [now] * allowed
    if per_hour is not None:
        for moment in released:
            within = [each for each in released if moment <= each < moment + timedelta(hours=1)]
            assert len(within) <= per_hour + 1


def gate(harness: Harness, waits: list[str], *, most_waiting: int = 3, sleep: object = None) -> PacedGate:
    pace = Pace(most_waiting, most_waiting, SLA_SECONDS / 2)
    return PacedGate(
        state=harness.app().state,
        pace=pace,
        poll_seconds=POLL_SECONDS,
        stall_seconds=3600,
        sleep=sleep or harness.clock.advance,  # type: ignore[arg-type]
        on_wait=waits.append,
    )


def test_room_in_the_watched_prefix() -> None:
    """What waits there counts, whichever program wrote it, but not the marker that keeps the folder."""
    harness, waits = Harness(), []
    harness.store.put(harness.layout.manifests_folder + KEEP_MARKER, b"")
    harness.deliver("m-1", b"{}\n")
    paced = gate(harness, waits)
    assert (paced.allow(10), paced.allow(1), waits) == (2, 1, [])


def test_waiting_for_the_job() -> None:
    """It waits until the job has finished some, and says so once."""
    harness, waits, slept = Harness(), [], []
    for number in range(3):
        harness.deliver(f"m-{number}", b"{}\n")

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        harness.clock.advance(seconds)
        if len(slept) == 5:
            harness.store.delete(harness.waiting()[:2])

    assert gate(harness, waits, sleep=sleep).allow(10) == 2
    assert (slept, waits) == ([POLL_SECONDS] * 5, ["3 waiting manifests, the oldest for 0 s"])


@pytest.mark.parametrize("others_go_on", [False, True], ids=["no job", "one is stuck"])
def test_a_job_that_never_gets_there(others_go_on: bool) -> None:
    """Without a job, or with one that is late all the time, it gives up after the stall time."""
    harness, waits = Harness(), []
    for number in range(3):
        harness.deliver(f"m-{number}", b"{}\n")
    began = harness.clock.now()

    def sleep(seconds: float) -> None:
        harness.clock.advance(seconds)
        if others_go_on:  # the first manifest stays
            harness.store.delete(harness.waiting()[1:])
            harness.deliver(f"n-{harness.clock.now():%H%M%S}", b"{}\n")

    paced = gate(harness, waits, most_waiting=2, sleep=sleep)
    assert paced.allow(10) == 0
    assert 3600 <= (harness.clock.now() - began).total_seconds() < 3600 + SLA_SECONDS

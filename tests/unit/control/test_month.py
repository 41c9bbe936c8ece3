"""A month of the control plane on a fake clock: Glue's restarts and outage, crashes, a crash loop, hangs."""

import random
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from compactor.adapters.memory.glue import MemoryGlue
from compactor.control.runs import JobRun, JobState
from compactor.core.errors import StoreUnavailable
from compactor.core.records import RecentCommit
from tests.support.recent_commits import recent_commit
from tests.unit.control.test_plane import LAYOUT, Scene

START = datetime(2026, 3, 1, tzinfo=UTC)  # a Sunday
DAYS = 30
TICK_SECONDS = 60
QUIET_MINUTES = 10
STARTING_SECONDS = 90
STOPPING_SECONDS = 30
SLACK_SECONDS = 4 * TICK_SECONDS  # one check to see it, one for the last heartbeat to age, one to act, one to start
LOOP = (START + timedelta(days=10, hours=3), START + timedelta(days=10, hours=9))
AWAY = (START + timedelta(days=16, hours=14), START + timedelta(days=16, hours=17))
LOST_RESTART_WEEK = 2


@dataclass(slots=True)
class Outage:
    """A time without a job at work.

    Attributes:
        cause: What began it.
        began: When.
        curable_from: When a start could first have helped.
    """

    cause: str
    began: datetime
    curable_from: datetime


@dataclass(slots=True)
class Account:
    """What happened in the month."""

    events: dict[str, int] = field(default_factory=dict)
    longest_seconds: dict[str, float] = field(default_factory=dict)
    most_living: int = 0
    down_seconds: float = 0.0
    starts_in_loop: int = 0

    def count(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def end(self, outage: Outage, now: datetime) -> None:
        seconds = (now - outage.curable_from).total_seconds()
        self.longest_seconds[outage.cause] = max(seconds, self.longest_seconds.get(outage.cause, 0.0))


class Month:
    """Glue, the job and the world around them, minute by minute while anything goes on.

    Args:
        seed: Of all chances.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.scene = Scene(maintenance_window="Sun:10")
        self.scene.clock.set(START)
        # Its lock is loose, so that only the decisions keep a second run from being started.
        self.scene.glue = MemoryGlue(
            self.scene.clock,
            max_concurrent_runs=3,
            starting_seconds=STARTING_SECONDS,
            stopping_seconds=STOPPING_SECONDS,
        )
        self.account = Account()
        self.hung: set[str] = set()
        self.outage: Outage | None = Outage("first start", START, START)
        self.delivered: list[str] = []
        self.next_commit_at = START
        minutes = range(60, DAYS * 1440)
        self.crashes = {START + timedelta(minutes=at) for at in self.chance.sample(minutes, 25)}
        self.crashes.add(AWAY[0] + timedelta(minutes=20))
        self.hangs = {START + timedelta(days=day, hours=5) for day in (5, 12, 23)}
        self.restarts = {
            START + timedelta(weeks=week, hours=10, minutes=self.chance.randrange(170)) for week in range(5)
        }

    def live(self) -> Account:
        now = START
        while now < START + timedelta(days=DAYS):
            self.scene.clock.set(now)
            self.happen(now)
            self.work(now)
            before = len(self.scene.glue.started)
            self.check(now)
            self.account.starts_in_loop += (LOOP[0] <= now < LOOP[1]) * (len(self.scene.glue.started) - before)
            self.account.most_living = max(self.account.most_living, len(self.scene.glue.living()))
            now += timedelta(minutes=1 if self.is_eventful(now) else QUIET_MINUTES)
        return self.account

    def is_eventful(self, now: datetime) -> bool:
        """Whether something happens now or soon; in between, fewer checks save time and find the same."""
        soon = {now + timedelta(minutes=at) for at in range(1, QUIET_MINUTES + 1)}
        is_planned = soon & (self.crashes | self.hangs | self.restarts | {LOOP[0], AWAY[0]})
        return self.outage is not None or bool(is_planned) or LOOP[0] <= now < LOOP[1] or AWAY[0] <= now < AWAY[1]

    def check(self, now: datetime) -> None:
        plane = self.scene.plane()
        if AWAY[0] <= now < AWAY[1]:
            with self.scene.glue.trouble(StoreUnavailable("Glue is away")):
                plane.check()
        else:
            plane.check()

    def happen(self, now: datetime) -> None:
        """What befalls the run that lives."""
        run = next(iter(self.scene.glue.living()), None)
        if run is None:
            return
        if now in self.restarts:
            is_lost = (now - START).days // 7 == LOST_RESTART_WEEK
            self.scene.glue.expire(run.run_id, restart_after_seconds=None if is_lost else self.chance.randrange(300))
            self.falls("lost restart" if is_lost else "restart by Glue", now)
        elif now in self.crashes:
            self.crash(run, "crash", now)
        elif now in self.hangs and run.state is JobState.RUNNING:
            self.hung.add(run.run_id)
            self.falls("hang", now)
        elif LOOP[0] <= now < LOOP[1] and run.state is JobState.RUNNING and run.run_id not in self.hung:
            self.crash(run, "crash loop", now)

    def crash(self, run: JobRun, cause: str, now: datetime) -> None:
        self.scene.glue.end(run.run_id, JobState.FAILED, cause)
        self.falls(cause, now)

    def falls(self, cause: str, now: datetime) -> None:
        self.account.count(cause)
        curable_from = LOOP[1] if cause == "crash loop" else now
        if AWAY[0] <= now < AWAY[1]:
            cause, curable_from = "outage of Glue", AWAY[1]
        if self.outage is None or self.outage.cause != "crash loop":
            self.outage = Outage(cause, now, curable_from)

    def work(self, now: datetime) -> None:
        """A manifest comes each minute; a run that works takes all of them and sends a heartbeat."""
        store, layout = self.scene.memory, LAYOUT
        uri = layout.manifest(f"m{now:%Y%m%d%H%M}")
        store.put(uri, b"{}")
        self.delivered.append(uri)
        run = next(iter(self.scene.glue.living()), None)
        if run is None or run.state is not JobState.RUNNING or run.run_id in self.hung:
            self.account.down_seconds += TICK_SECONDS
            return
        if self.outage is not None:
            self.account.end(self.outage, now)
            self.outage = None
            self.scene.sources().runs.forget_dead()  # as every run does when it begins
        self.scene.beat(run.run_id)
        store.delete(self.delivered)
        self.delivered.clear()
        if now >= self.next_commit_at:
            self.next_commit_at = now + timedelta(minutes=30)
            store.put(layout.recent(now.hour % 2), commit_at(now).model_dump_json().encode())


def commit_at(now: datetime) -> RecentCommit:
    return recent_commit(now, input_bytes=1_000_000, seconds=30.0)


@pytest.mark.parametrize("seed", [1])
def test_a_month(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Never two runs; every outage ends within the policy's time; the number of starts is bounded."""
    month = Month(seed)
    account = month.live()
    policy = month.scene.policy
    began = STARTING_SECONDS + SLACK_SECONDS
    bounds = {
        "first start": began,
        "restart by Glue": 300 + began,
        "lost restart": policy.expired_grace_seconds + began,
        "crash": policy.backoff_longest_seconds + began,
        "crash loop": policy.breaker_cooldown_seconds + began,
        "hang": policy.start_grace_seconds + policy.hang_seconds + STOPPING_SECONDS + began,
        "outage of Glue": policy.backoff_longest_seconds + began,
    }
    happened = account.events
    loop_seconds = (LOOP[1] - LOOP[0]).total_seconds()
    most_in_loop = policy.breaker_failures + loop_seconds / policy.breaker_cooldown_seconds + 1
    most_starts = 1 + happened["crash"] + happened["hang"] + happened["lost restart"] + most_in_loop + 1
    with capsys.disabled():
        sys.stdout.write(f"\n{figures(month, bounds, most_starts=most_starts, most_in_loop=most_in_loop)}\n")
    assert account.most_living == 1
    assert month.outage is None
    assert set(account.longest_seconds) == set(bounds)
    for cause, seconds in account.longest_seconds.items():
        assert seconds <= bounds[cause], cause
    assert account.starts_in_loop <= most_in_loop
    assert len(month.scene.glue.started) <= most_starts


def figures(month: Month, bounds: dict[str, float], *, most_starts: float, most_in_loop: float) -> str:
    """What happened, against what may."""
    account, scene = month.account, month.scene
    starts = f"{len(scene.glue.started)} starts (at most {most_starts:.0f})"
    looped = f"{account.starts_in_loop} of them in the crash loop (at most {most_in_loop:.0f})"
    down = f"down for {account.down_seconds / 3600:.1f} h"
    told = f"{len(scene.notifier.messages)} messages"
    lines = [f"{DAYS} days: {starts}, {looped}; {account.most_living} run at once; {down}; {told}"]
    for cause, seconds in account.longest_seconds.items():
        times = account.events.get(cause, 1)
        lines.append(f"  {cause}: {times}, longest {seconds / 60:.0f} min (at most {bounds[cause] / 60:.0f})")
    return "\n".join(lines)

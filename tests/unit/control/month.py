"""A month of one deployment: Glue, the job, its deployments and its troubles, around the real control plane."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from compactor.adapters.aws.glue_job import GlueJob
from compactor.control.notices import Notified
from compactor.control.plane import Check
from tests.support.control_scene import LAYOUT, Scene
from tests.support.glue_service import Definition, GlueService, Run

START = datetime(2026, 3, 1, tzinfo=UTC)  # a Sunday
DAYS = 30
QUIET_MINUTES = 120
WINDOW = "Sun:10"
WINDOW_HOUR, WINDOW_HOURS = 10, 3

DEFINITIONS = {
    "timeout": Definition(timeout_minutes=10_079),
    "window": Definition(),
    # What Glue 5.0 and later may give a run of a job that states no timeout: "the timeout is defaulted to 480 minutes".
    "window, and Glue's own timeout": Definition(timeout_minutes=480),
}
"""How runs end that go on and on."""


@dataclass(slots=True)
class Outage:
    """A time without a job at work.

    Attributes:
        curable_from: When a start could first have helped.
    """

    cause: str
    curable_from: datetime


@dataclass(slots=True)
class Account:
    """What happened.

    Attributes:
        longest_seconds: How long each cause lasted at most after it could have been cured.
        told: When people were told of each alarm.
    """

    longest_seconds: dict[str, float] = field(default_factory=dict)
    told: dict[str, list[datetime]] = field(default_factory=dict)
    oldest_seconds: float = 0.0
    down_seconds: float = 0.0
    checks: int = 0
    most_living: int = 0
    raised: set[str] = field(default_factory=set)

    def note(self, checked: Check, raised: set[str], now: datetime) -> None:
        """Note a check, after which people know of these alarms."""
        self.checks += 1
        for name in raised - self.raised:
            self.told.setdefault(name, []).append(now)
        self.raised = raised
        if checked.snapshot.backlog is not None:
            self.oldest_seconds = max(self.oldest_seconds, checked.snapshot.backlog.oldest_seconds)


class Month:
    """Glue, the job and the world around them, minute by minute while anything goes on.

    Args:
        seed: Of all chances.
        ends: A key of `DEFINITIONS`.
    """

    def __init__(self, seed: int, ends: str) -> None:
        self.chance = Random(seed)
        self.ends = ends
        definition = DEFINITIONS[ends]
        self.scene = Scene(maintenance_window=WINDOW if "window" in ends else "")
        self.scene.clock.set(START)
        # Its lock is loose, so that only the decisions keep a second run from being started.
        self.glue = GlueService(self.scene.clock, self.chance, definition, throttled=0.02, max_concurrent_runs=3)
        self.scene.glue = GlueJob(client=self.glue, name="job")  # type: ignore[assignment]
        self.account = Account()
        self.outage: Outage | None = Outage("first start", START)
        self.hung: set[str] = set()
        self.delivered: list[str] = []
        self._plan(definition)

    def _plan(self, definition: Definition) -> None:
        """Each trouble has a day of its own; crashes may come at any time."""
        days = self.chance.sample([day for day in range(1, DAYS - 1) if day % 7], 9)
        loop, away, bad, held, gone, busy, *hangs = (START + timedelta(days=day, hours=self._hour()) for day in days)
        self.loop = (loop, loop + timedelta(hours=2))
        self.away = (away, away + timedelta(minutes=40))
        self.bad = (bad, bad + timedelta(minutes=self.chance.randrange(70, 130)))
        self.held = (held, held + timedelta(minutes=self.chance.randrange(20, 40)))
        self.gone = (gone, gone + timedelta(minutes=30))
        self.busy = (busy, busy + timedelta(minutes=40))
        self.hangs = set(hangs)
        # A crash right after a crash loop is a failed trial, which is no crash like another.
        minutes = (START + timedelta(minutes=at) for at in self.chance.sample(range(60, DAYS * 1440), 10))
        trials = [(start, end + timedelta(hours=2)) for start, end in (self.loop, self.bad)]
        self.crashes = {at for at in minutes if not any(start <= at < end for start, end in trials)}
        self.crashes |= {self.away[0] + timedelta(minutes=20), self.held[0], self.busy[0] + timedelta(minutes=5)}
        self.good_definition = definition
        sundays = (START + timedelta(weeks=week, hours=WINDOW_HOUR) for week in range(5))
        restarted = not definition.timeout_minutes
        within = WINDOW_HOURS * 60 - 10
        self.restarts = {each + timedelta(minutes=self.chance.randrange(within)) for each in sundays if restarted}
        self.lost_restart = sorted(self.restarts)[2] if self.restarts else None
        edges = (self.loop, self.away, self.bad, self.held, self.gone, self.busy)
        self.events = sorted({*(at for span in edges for at in span), *self.crashes, *self.hangs, *self.restarts})

    def _hour(self) -> int:
        return self.chance.randrange(24)

    def live(self, days: int = DAYS) -> Account:
        now = START
        while now < START + timedelta(days=days):
            self.scene.clock.set(now)
            self._happen(now)
            self._work(now)
            checked = self.scene.plane().check()
            self.account.note(checked, self._raised(), now)
            self.account.most_living = max(self.account.most_living, len(self.glue.living()))
            now = self._next(now)
        return self.account

    def _raised(self) -> set[str]:
        """The alarms that people know of."""
        if self.scene.memory.stat(LAYOUT.notices) is None:
            return set()
        return set(Notified.model_validate_json(self.scene.memory.read(LAYOUT.notices)).alarms)

    def most_starts(self) -> float:
        """One for each thing that ends a run, those of the two crash loops as the breaker lets them, and few more."""
        policy = self.scene.policy
        looped = sum((end - start).total_seconds() for start, end in (self.loop, self.bad))
        trials = 2 * (policy.breaker_failures + 1) + looped / policy.breaker_cooldown_seconds
        limit = self.good_definition.timeout_minutes
        return (
            len(self.crashes)
            + len(self.hangs)
            + len(self.restarts)
            + 3
            + trials
            + (DAYS * 1440 / limit if limit else 0)
        )

    def _next(self, now: datetime) -> datetime:
        """A minute later while something goes on; else at the next event, for checks in between find the same."""
        soon = now + timedelta(minutes=1)
        spans = (self.loop, self.away, self.held, self.gone, self.busy)
        is_eventful = self.outage is not None or any(start <= now < end for start, end in spans)
        if is_eventful or self._is_ending():
            return soon
        coming = next((at for at in self.events if at > now), START + timedelta(days=DAYS))
        return max(soon, min(coming, now + timedelta(minutes=QUIET_MINUTES), *self._timeouts()))

    def _timeouts(self) -> Iterator[datetime]:
        """When the control plane begins to drain a run before its timeout."""
        lead = timedelta(seconds=self.scene.policy.drain_seconds)
        for run in self.glue.living():
            if run.definition.timeout_minutes:
                yield run.started_at + timedelta(minutes=run.definition.timeout_minutes) - lead

    def _is_ending(self) -> bool:
        return any(at <= self.scene.clock.now() for at in self._timeouts())

    def _happen(self, now: datetime) -> None:
        """What befalls the service and the run that lives."""
        self.glue.is_away = self.away[0] <= now < self.away[1]
        self.glue.throttled = 0.6 if self.busy[0] <= now < self.busy[1] else 0.02
        self.glue.refused_until = self.held[1] if self.held[0] <= now < self.held[1] else None
        self._deploy(now)
        if now == self.gone[0]:
            self.glue.delete()
            self._fall("deleted job", self.gone[1])
        if now == self.gone[1]:
            self.glue.create()
        run = next(iter(self.glue.living()), None)
        if run is not None:
            self._befall(run, now)

    def _deploy(self, now: datetime) -> None:
        """A bad release, which ends the run by `compactor stop`; and its repair."""
        if now == self.bad[0]:
            self.glue.deploy(Definition(self.good_definition.timeout_minutes, is_bad=True))
            for run in self.glue.living():
                self.glue.end(run.run_id, "SUCCEEDED")
            self._fall("bad release", self.bad[1])
        if now == self.bad[1]:
            self.glue.deploy(self.good_definition)

    def _befall(self, run: Run, now: datetime) -> None:
        is_up = run.state == "RUNNING"
        if now in self.restarts:
            is_lost = now == self.lost_restart
            self.glue.expire(run.run_id, restart_after_seconds=None if is_lost else self.chance.randrange(300))
            self._fall("lost restart" if is_lost else "restart by Glue", now)
        elif now in self.crashes:
            self._crash(run, "crash", now)
        elif now in self.hangs and is_up:
            self.hung.add(run.run_id)
            self._fall("hang", now)
        elif self.loop[0] <= now < self.loop[1] and is_up:
            self._crash(run, "crash loop", self.loop[1])
        elif run.definition.is_bad and is_up:
            self._crash(run, "bad release", self.bad[1])

    def _crash(self, run: Run, cause: str, curable_from: datetime) -> None:
        self.glue.end(run.run_id, "FAILED", cause)
        for name, (start, end) in {
            "outage of Glue": self.away,
            "refused starts": self.held,
            "throttling": self.busy,
        }.items():
            if start <= curable_from < end:
                cause, curable_from = name, end
        self._fall(cause, curable_from)

    def _fall(self, cause: str, curable_from: datetime) -> None:
        """The job is down, and no start can help before that time, nor while Glue is away or refuses starts."""
        cause, curable_from = self._kept_down(cause, curable_from)
        if self.outage is None or curable_from > self.outage.curable_from:
            self.outage = Outage(cause, curable_from)

    def _kept_down(self, cause: str, at: datetime) -> tuple[str, datetime]:
        spans = {"outage of Glue": self.away, "refused starts": self.held, "throttling": self.busy}
        return next(((name, end) for name, (start, end) in spans.items() if start <= at < end), (cause, at))

    def _work(self, now: datetime) -> None:
        """A manifest comes; a run that works takes all of them, sends a heartbeat, and ends when it is asked to."""
        store = self.scene.memory
        uri = LAYOUT.manifest(f"m{now:%Y%m%d%H%M}")
        store.put(uri, b"{}")
        self.delivered.append(uri)
        run = next((run for run in self.glue.living() if run.state == "RUNNING"), None)
        if run is None or run.run_id in self.hung or run.definition.is_bad:
            self._rest(now)
            return
        if self.outage is not None:
            seconds = (now - self.outage.curable_from).total_seconds()
            self.account.longest_seconds[self.outage.cause] = max(
                seconds, self.account.longest_seconds.get(self.outage.cause, 0.0)
            )
            self.outage = None
            self.scene.sources().runs.forget_dead()  # as every run does when it begins
        self.scene.beat(run.run_id)
        store.delete(self.delivered)
        self.delivered.clear()
        if store.stat(LAYOUT.stop_request(run.run_id)) is not None:
            self.glue.end(run.run_id, "SUCCEEDED")
            self._fall("drain", now)

    def _rest(self, now: datetime) -> None:
        self.account.down_seconds += 60
        if self.outage is None:  # ended by Glue at its timeout, or stopped
            self._fall("timeout", now)
        elif self._kept_down("", now)[1] > now:
            self._fall(self.outage.cause, now)

"""Plans from an S3 Inventory: which folders, how fast, and again after the leases of dead planners."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.errors import SettingsError
from compactor.core.layout import canonical, folder, is_delivery, is_within
from compactor.ledger.backlog import WaitingManifests, waiting_manifests
from compactor.ledger.state import State
from compactor.settings.control_policy import STALL_SECONDS
from compactor.settings.settings import Settings
from compactor.sources.input_files import check_prefix
from compactor.sources.inventory.document import Inventory
from compactor.sources.plan import Plan
from compactor.sources.planner import Gate, Planner
from compactor.sources.unplanned import Unplanned
from compactor.telemetry.logs import log_event

MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Rate:
    """The release rate of planned manifests.

    Attributes:
        is_paced: Whether they wait until the watched prefix has room.
        per_hour: The most per hour; None for no limit.
    """

    is_paced: bool = True
    per_hour: float | None = None


def gate_of(
    settings: Settings, state: State, rate: Rate, on_wait: Callable[[str], None], sleep: Callable[[float], None]
) -> Gate | None:
    """Make the gate that limits a rate; None for no limit."""
    if not rate.is_paced:
        return None
    stream, control = settings.stream, settings.control
    pace = Pace(
        slots=stream.manifests_in_flight,
        # At most one micro-batch waits while the manifests in flight are processed, so the job never idles.
        most_waiting=stream.manifests_per_trigger + stream.manifests_in_flight,
        most_age_seconds=control.sla_seconds / 2,
        per_hour=rate.per_hour,
    )
    gate = PacedGate(
        state=state,
        pace=pace,
        poll_seconds=stream.trigger_interval_seconds,
        stall_seconds=STALL_SECONDS,
        sleep=sleep,
        on_wait=on_wait,
    )
    return gate.allow


def planned_in_rounds(
    planner: Planner,
    files: Unplanned,
    gate: Gate | None,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Plan:
    """Write manifests for files. Files claimed by a dead planner follow after its lease."""
    plan = Plan(dry_run=dry_run)
    for number in range(MAX_ROUNDS):
        planner.plan(files, limit=limit, gate=gate, plan=plan)
        if dry_run or plan.is_over or plan.held_until is None or number == MAX_ROUNDS - 1:
            break
        sleep(max(0.0, (plan.held_until - planner.state.clock.now()).total_seconds()) + 0.1)
        plan.held, plan.held_until = 0, None
    return plan


def check_can_plan(settings: Settings) -> None:
    """Check that files from an inventory may be planned.

    Raises:
        SettingsError: The job reads any version of a file, so that a replaced file could be compacted twice.
    """
    if settings.input.on_changed_file != "skip":
        why = "a file may have been replaced since, and the event of its new version plans it, too"
        raise SettingsError([f'input.on_changed_file: "read" -> expected "skip" for --inventory: {why}'])


def prefixes_to_plan(
    state: State, allowed_prefixes: Sequence[str], inventory: Inventory, prefix: str | None
) -> tuple[str, ...]:
    """The folders of an inventory to plan: the given one, else all allowed ones in its bucket.

    Raises:
        SettingsError: None is in its bucket, or the given one is not allowed.
    """
    if prefix is not None:
        check_prefix(state, prefix, allowed_prefixes)
    asked = allowed_prefixes if prefix is None else [prefix]
    bucket = f"s3://{inventory.source_bucket}"
    within = tuple(f for f in (folder(canonical(each)) for each in asked) if is_within(f, bucket))
    if not within:
        named = "input.allowed_prefixes" if prefix is None else "PREFIX"
        raise SettingsError([f"plan: {inventory.uri} lists {bucket} -> expected {named} in it: {', '.join(asked)}"])
    return within


@dataclass(slots=True)
class Pace:
    """Keeps a few manifests waiting for the job, and fewer if they wait too long.

    A live manifest finds at most this many planned ones ahead of it. The limit grows by one when a slot of the job is
    idle, falls by one when more than one manifest waits in addition to those in progress, and is halved when a manifest
    gets too old. So it settles where the job just stays busy.

    Attributes:
        slots: Manifests that the job processes at once.
        most_waiting: Planned manifests are added up to this many in the watched prefix, including those in progress.
        most_age_seconds: Planned manifests are added up to this age of the oldest one.
        per_hour: The most manifests to release per hour; None for no limit.
    """

    slots: int
    most_waiting: int
    most_age_seconds: float
    per_hour: float | None = None
    _width: int = field(init=False)
    _was_late: bool = field(default=False, init=False)
    _next_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._width = min(self.slots + 1, self.most_waiting)

    def is_late(self, backlog: WaitingManifests) -> bool:
        """Whether the oldest manifest has waited too long for more to be added."""
        return backlog.oldest_seconds > self.most_age_seconds

    def allowed(self, backlog: WaitingManifests, now: datetime) -> int:
        """How many manifests may be released now."""
        is_late = self.is_late(backlog)
        if is_late and not self._was_late:
            self._width = max(1, self._width // 2)
        elif not is_late and backlog.manifests < self.slots:
            self._width = min(self.most_waiting, self._width + 1)
        elif backlog.manifests > self.slots + 1:
            self._width = max(1, min(self._width, self.slots + 1), self._width - 1)
        self._was_late = is_late
        free = 0 if is_late else max(0, self._width - backlog.manifests)
        if self.per_hour is None:
            return free
        return min(free, 1) if self._next_at is None or now >= self._next_at else 0

    def note_released(self, manifests: int, now: datetime) -> None:
        if self.per_hour is not None and manifests:
            pause = timedelta(hours=manifests / self.per_hour)
            self._next_at = max(now, self._next_at or now) + pause


WAITING_FOR = "the job"


@dataclass(slots=True, kw_only=True)
class PacedGate:
    """A gate that lists the watched prefix before each release. For one thread.

    Attributes:
        poll_seconds: Time between listings.
        stall_seconds: It gives up after this long if the job finished no manifest, or was always late.
        on_wait: Called at the start of each wait, with its cause.
    """

    state: State
    pace: Pace
    poll_seconds: float
    stall_seconds: float
    sleep: Callable[[float], None]
    on_wait: Callable[[str], None] = lambda _why: None
    _seen: frozenset[str] = field(default_factory=frozenset, init=False)
    _moved_at: datetime | None = field(default=None, init=False)
    _late_since: datetime | None = field(default=None, init=False)

    def allow(self, most: int) -> int:
        """See `planner.Gate`."""
        is_waiting = False
        while True:
            now = self.state.clock.now()
            backlog = self._backlog(now)
            if allowed := min(most, self.pace.allowed(backlog, now)):
                self.pace.note_released(allowed, now)
                self._moved_at = now
                return allowed
            if backlog.manifests and self._is_stalled(now):
                return 0
            if not is_waiting:
                is_waiting = True
                log_event("planning.waiting", waiting_for=WAITING_FOR, seconds=round(self.poll_seconds, 1))
                self.on_wait(_why(backlog))
            self.sleep(self.poll_seconds)

    def _is_stalled(self, now: datetime) -> bool:
        since = min(filter(None, (self._moved_at, self._late_since)), default=now)
        return (now - since).total_seconds() > self.stall_seconds

    def _backlog(self, now: datetime) -> WaitingManifests:
        written_at = {
            info.uri: info.modified_at
            for info in self.state.store.list(self.state.layout.manifests_folder)
            if is_delivery(info.uri)
        }
        seen = frozenset(written_at)
        if self._moved_at is None or self._seen - seen:
            self._moved_at = now
        self._seen = seen
        backlog = waiting_manifests(written_at.values(), now)
        self._late_since = (self._late_since or now) if self.pace.is_late(backlog) else None
        return backlog


def _why(backlog: WaitingManifests) -> str:
    if not backlog.manifests:
        return "the given rate"
    return f"{backlog.manifests} waiting manifests, the oldest for {backlog.oldest_seconds:.0f} s"

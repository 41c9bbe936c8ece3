"""Reads how the job stands. The cost depends on what is open and recent, not on what is done."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from compactor.control.gathering import HISTORY_DAYS
from compactor.control.ports import JobRuns
from compactor.core.errors import CompactorError, ObjectNotFound, StuckError
from compactor.core.layout import Layout
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Clock, ObjectStore
from compactor.core.records import Commit, Done, RecentCommit
from compactor.ledger.heartbeat import Runs
from compactor.ledger.ledger import RECENT_SLOTS, Ledger
from compactor.ledger.sizing import learned_ratio
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.redrive.redrive_log import RedriveLog
from compactor.ops.status.cache import StatusCache
from compactor.ops.status.failures import FailureReader
from compactor.ops.status.flow import drain, latency, rates, rejects
from compactor.ops.status.health import Facts, Rules, health
from compactor.ops.status.spent import NOT_ON_GLUE, spent
from compactor.ops.status.values import LivingRun, SchemaSeen, Spent, Status
from compactor.ops.status.waiting import read_waiting
from compactor.schema.registry import SchemaRegistry

LATENCY_COMMITS = 16
"""How many commits, the latest, are asked how long their files took."""

GLUE_SECONDS = 60.0
"""How long a watch goes by what Glue said."""

_SHOWN_ERROR_CHARACTERS = 200


class StatusReader:
    """Reads how the job stands.

    One look asks the store to list six folders (the watched prefix, pending, open, failed, runs, schemas) and the ring
    of latest commits, and to read at most `MANIFESTS_READ` waiting manifests, `RECENT_SLOTS` summaries, three records
    of each of `LATENCY_COMMITS` commits, and the trails of `LETTERS_READ` dead letters and `COMMITS_READ` commits, each
    of a few records. What never changes is read once by a reader, and not again by its next look.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: What is on record.
        runs: Signs of life.
        redrive_log: What was put back.
        clock: Time.
        rules: What is too long.
        allowed_prefixes: Folders that input may be in.
        registry: Makes a registry that has read nothing yet.
        glue: Connects to the runs at Glue; None where the job does not run there.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        runs: Runs,
        redrive_log: RedriveLog,
        clock: Clock,
        rules: Rules,
        allowed_prefixes: Sequence[str],
        registry: Callable[[], SchemaRegistry],
        glue: Callable[[], JobRuns] | None = None,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._runs = runs
        self._clock = clock
        self._rules = rules
        self._allowed_prefixes = allowed_prefixes
        self._registry = registry
        self._glue = glue
        self._memory = StatusCache()
        self._set_aside = FailureReader(store, layout, ledger, redrive_log, self._memory)

    def read(self) -> Status:
        """How the job stands now.

        Raises:
            TryAgainError: Passing trouble of the store.
            OperatorError: A person must act.
        """
        now = self._clock.now()
        living = self._living()
        last_sign_at = None if living else self._runs.last_sign_at()
        recent = self._ledger.recent()
        waiting = read_waiting(
            self._store, self._layout, self._ledger, now, self._memory, allowed_prefixes=self._allowed_prefixes
        )
        committed = {commit.manifest_id for commit in recent}
        arrivals = [(moment, length) for each, moment, length in waiting.manifests if each not in committed]
        found_rates = rates(recent, arrivals, now, slots=RECENT_SLOTS)
        found_drain = drain(waiting.backlog, found_rates, is_running=bool(living))
        letters, looked_at = self._set_aside.dead_letters()
        files = self._set_aside.files(recent)
        last_commit_at = recent[-1].decided_at if recent else None
        facts = Facts(now, living, last_sign_at, last_commit_at, waiting.backlog, found_drain, letters, files)
        status = Status(
            as_of=now,
            state=health(facts, self._rules),
            runs=living,
            last_sign_at=last_sign_at,
            backlog=waiting.backlog,
            rates=found_rates,
            drain=found_drain,
            latency=latency(self._arrivals(recent)),
            rejects=rejects(recent),
            dead_letters=letters,
            quarantined_files=files,
            schema=self._schema(),
            recent=tuple(recent),
            ratio=learned_ratio(recent),
            cost=self._cost(recent, now),
        )
        self._memory.keep_only(letters=looked_at, commits=committed)
        return status

    def _living(self) -> tuple[LivingRun, ...]:
        return tuple(
            LivingRun(
                beat.run_id, beat.host, beat.started_at, beat.heartbeat_at, self._runs.asked_to_stop_at(beat.run_id)
            )
            for beat in self._runs.living()
        )

    def _arrivals(self, recent: Sequence[RecentCommit]) -> list[tuple[float, ...]]:
        """Of each of the latest commits that are done, how long its files took to be visible."""
        return [found for found in map_ordered(self._arrivals_of, recent[-LATENCY_COMMITS:]) if found]

    def _arrivals_of(self, summary: RecentCommit) -> tuple[float, ...]:
        manifest_id = summary.manifest_id
        known = self._memory.arrivals.get(manifest_id)
        if known is not None:
            return known
        try:
            accepted = self._ledger.accepted(manifest_id)
            if accepted is None:
                return ()
            done = self._ledger.record(self._layout.done(summary.key), Done)
            outcome = self._ledger.outcome(summary.key)
        except (ObjectNotFound, StuckError):  # not done yet, or nobody can tell
            return ()
        found = arrival_seconds(accepted, outcome, done.done_at) if isinstance(outcome, Commit) else ()
        self._memory.arrivals[manifest_id] = found
        return found

    def _schema(self) -> SchemaSeen:
        latest = self._registry().latest()
        newest = latest.columns[-1].name if latest.columns else ""
        return SchemaSeen(latest.version, len(latest.columns), newest, latest.created_at if latest.version else None)

    def _cost(self, recent: Sequence[RecentCommit], now: datetime) -> Spent:
        """What Glue's runs cost; that it cannot be asked is no reason to show nothing at all."""
        if self._glue is None:
            return Spent(NOT_ON_GLUE)
        known = self._memory.cost
        if known is None or (now - known[0]).total_seconds() >= GLUE_SECONDS:
            try:
                found = spent(self._glue().list(now - timedelta(days=HISTORY_DAYS)), recent, now)
            except CompactorError as exc:
                found = Spent(f"not known: {' '.join(str(exc).split())}"[:_SHOWN_ERROR_CHARACTERS])
            known = self._memory.cost = (now, found)
        return known[1]

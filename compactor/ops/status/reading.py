"""Reads the status of the job. The cost depends on what is open and recent, not on what is done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.control.gathering import HISTORY_DAYS, living_runs
from compactor.control.ports import JobRuns
from compactor.core.documents.records import Commit, Done, RecentCommit
from compactor.core.documents.totals import bytes_per_byte
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.ledger.heartbeat import Runs
from compactor.ledger.history.expired_seen import expired_seen
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.housekeeping import failing_tasks
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.state import State
from compactor.ledger.work_time import arrival_seconds
from compactor.manifests.kafka.topics_seen import TopicWatch
from compactor.manifests.kinesis.streams_seen import StreamWatch
from compactor.ops.status.cache import StatusCache
from compactor.ops.status.failures import FailureReader
from compactor.ops.status.flow import drain, latency, misfits, output_sizes, rates, rejects
from compactor.ops.status.health import Rules, health
from compactor.ops.status.shards import shards_among
from compactor.ops.status.spent import NOT_ON_GLUE, spent
from compactor.ops.status.values import Facts, SchemaSeen, Spent, Status
from compactor.ops.status.waiting import read_waiting
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import NO_COLUMNS, ColumnsUsed
from compactor.table.listed import ListedTable
from compactor.table.standing import table_seen

LATENCY_COMMITS = 16  # how many commits, the latest, are read for the latency of their files

GLUE_SECONDS = 60.0  # how long an answer of Glue is used again

_SHOWN_ERROR_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReader:
    """Reads the status of the job.

    One reading lists eight folders (the watched prefix, pending, open, failed, runs, schemas, and the two of what
    expired) and the ring of latest commits. It reads at most `MANIFESTS_READ` waiting manifests, `RECENT_SLOTS`
    summaries, three records of each of `LATENCY_COMMITS` commits, and the redrive logs of `LETTERS_READ` dead letters
    and `COMMITS_READ` commits, each of a few records; where files are quarantined, also the commits of the ring since;
    one record of each task beside the work; and with a table one record of each job.
    What never changes is read once.
    """

    state: State
    runs: Runs
    redrive_log: RedriveLog
    rules: Rules
    allowed_prefixes: Sequence[str]  # folders that input may be in
    target_file_bytes: int  # how large an output file should be
    registry: Callable[[], SchemaRegistry]  # makes a schema registry that has read nothing yet
    glue: Callable[[], JobRuns] | None = None  # connects to the runs on Glue; None where the job does not run there
    no_cost: str = NOT_ON_GLUE  # why no cost is shown without `glue`
    table: ListedTable | None = None  # the table of the output; its catalog is not asked
    topics: TopicWatch | None = None  # the topics that jobs plan; asks brokers if it can
    kinesis: StreamWatch | None = None  # the streams of Kinesis that jobs plan
    cache: StatusCache = field(default_factory=StatusCache)

    def read(self) -> Status:
        """Read the status as of now. Errors of the store are a `TryAgainError` or an `OperatorError`."""
        now, cache = self.state.clock.now(), self.cache
        living = living_runs(self.runs)
        last_heartbeat_at = None if living else self.runs.last_sign_at()
        recent = self.state.ledger.recent()
        committed = {commit.manifest_id for commit in recent}
        waiting = read_waiting(self.state, now, cache, allowed_prefixes=self.allowed_prefixes)
        arrivals = [(moment, length) for each, moment, length in waiting.manifests if each not in committed]
        found_rates = rates(recent, arrivals, now, slots=RECENT_SLOTS)
        failures = FailureReader(state=self.state, redrive_log=self.redrive_log, cache=cache)
        letters, letters_read = failures.dead_letters(recent)
        columns, schema = self._schema_seen()
        facts = Facts(
            as_of=now,
            runs=living,
            last_heartbeat_at=last_heartbeat_at,
            backlog=waiting.backlog,
            drain=drain(waiting.backlog, found_rates, is_running=bool(living)),
            dead_letters=letters,
            quarantined_files=failures.files(recent),
            recent=tuple(recent),
            columns=columns,
            schema=schema,
            shards=shards_among(living, self.rules.shards),
            table=None if self.table is None else table_seen(self.state, self.table, now),
            topics=() if self.topics is None else self.topics.seen(now),
            kinesis=() if self.kinesis is None else self.kinesis.seen(now),
            housekeeping=failing_tasks(self.state, () if self.table is None else self.table.upkeep),
        )
        status = Status(
            **vars(facts),
            state=health(facts, self.rules),
            rates=found_rates,
            latency=None if self.rules.sla_seconds is None else latency(self._arrivals(recent)),
            rejects=rejects(recent),
            misfits=misfits(recent),
            output_bytes_per_input_byte=bytes_per_byte(
                sum(each.output_bytes for each in recent), sum(each.input_bytes for each in recent)
            ),
            sizes=output_sizes(recent, self.target_file_bytes),
            cost=self._cost(recent, now),
            folder=self.rules.suggest.folder,
            expired=expired_seen(self.state),
        )
        cache.keep_only(letters=letters_read, commits=committed)
        return status

    def _schema_seen(self) -> tuple[ColumnsUsed, SchemaSeen]:
        """What the latest schema version has. One that cannot be read hides nothing else."""
        registry = self.registry()
        try:
            latest = registry.latest()
        except (ObjectNotFound, RecordUnreadable) as exc:
            return NO_COLUMNS, SchemaSeen(0, 0, "", None, str(exc))
        newest = latest.columns[-1].name if latest.columns else ""
        changed_at = latest.created_at if latest.version else None
        return registry.used(latest), SchemaSeen(latest.version, len(latest.columns), newest, changed_at)

    def _arrivals(self, recent: Sequence[RecentCommit]) -> list[tuple[float, ...]]:
        """For each of the latest commits that are done, the seconds from arrival to visible of its files."""
        return [found for found in map_ordered(self._arrivals_of, recent[-LATENCY_COMMITS:]) if found]

    def _arrivals_of(self, summary: RecentCommit) -> tuple[float, ...]:
        manifest_id = summary.manifest_id
        known = self.cache.arrivals.get(manifest_id)
        if known is not None:
            return known
        try:
            accepted = self.state.ledger.accepted(manifest_id)
            if accepted is None:
                return ()
            done = self.state.ledger.record(self.state.layout.done(summary.key), Done)
            outcome = self.state.ledger.outcome(summary.key)
        except (ObjectNotFound, StuckError):  # not done yet, or unreadable
            return ()
        found = arrival_seconds(accepted, outcome, done.done_at) if isinstance(outcome, Commit) else ()
        self.cache.arrivals[manifest_id] = found
        return found

    def _cost(self, recent: Sequence[RecentCommit], now: datetime) -> Spent:
        """The cost of Glue's runs. An error of Glue hides nothing else."""
        if self.glue is None:
            return Spent(self.no_cost)
        known = self.cache.cost
        if known is None or (now - known[0]).total_seconds() >= GLUE_SECONDS:
            try:
                found = spent(self.glue().list(now - timedelta(days=HISTORY_DAYS)), recent, now)
            except CompactorError as exc:
                found = Spent(f"not known: {' '.join(str(exc).split())}"[:_SHOWN_ERROR_CHARACTERS])
            known = self.cache.cost = (now, found)
        return known[1]

"""Reads the status of the job. The cost depends on what is open and recent, not on what is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.control.gathering import HISTORY_DAYS, living_runs
from compactor.control.snapshot import JobRuns
from compactor.core.documents.closed_dates import bytes_per_byte
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import CompactorError, ManifestError, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.layout import id_from_name, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.reading import Detail, Scope, accounts
from compactor.ledger.backlog import Backlog, read_begun, read_waiting_manifest
from compactor.ledger.heartbeat import Runs
from compactor.ledger.housekeeping import failing_tasks
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.status.failures import FailureReader, StatusCache
from compactor.ops.status.flow import NOT_ON_GLUE, drain, latency, misfits, output_sizes, rates, rejects, spent
from compactor.ops.status.health import Rules, health, shards_among
from compactor.ops.status.values import Facts, SchemaSeen, Spent, Status
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import NO_COLUMNS, ColumnsUsed
from compactor.sources.landing.seen import LogWatch
from compactor.table.listed import ListedTable
from compactor.table.standing import table_seen

MANIFESTS_READ = 200
"""How many waiting manifests are read for the bytes that they name. The bytes of the others are extrapolated."""

READ_MAX_BYTES = 4 * 1024 * 1024  # a longer manifest, of about 20,000 files, is not read; its bytes are extrapolated


@dataclass(frozen=True, slots=True)
class Waiting:
    """The backlog, manifest by manifest."""

    backlog: Backlog
    # The id as the name has it, the arrival and the input bytes of each manifest. Bytes that were not read are
    # extrapolated
    manifests: Sequence[tuple[str, datetime, float]]


def read_waiting(state: State, now: datetime, cache: StatusCache, *, allowed_prefixes: Sequence[str]) -> Waiting:
    """Read the backlog. At most `MANIFESTS_READ` manifests are read, evenly spread over all."""
    infos = [info for info in state.store.list(state.layout.manifests_folder) if is_delivery(info.uri)]
    weights = _weights(state, infos, cache, allowed_prefixes)
    per_byte = _bytes_per_manifest_byte(infos, weights)
    manifests = [
        (id_from_name(info.uri), info.modified_at, float(weights.get(_key(info), info.size_bytes * (per_byte or 0.0))))
        for info in infos
    ]
    begun = read_begun(state)
    oldest_begun, begun_seconds = _oldest(begun.left_to_jobs, now)
    oldest_undecided, undecided_seconds = _oldest(begun.undecided, now)
    parts = [info.modified_at for info in state.store.list(state.layout.pending_folder)]
    is_known = per_byte is not None or not infos
    backlog = Backlog(
        manifests=len(infos),
        manifests_read=len(weights),
        input_bytes=round(sum(length for _, _, length in manifests)) if is_known else None,
        oldest_seconds=_age(min((info.modified_at for info in infos), default=now), now),
        begun_manifests=len(begun.left_to_jobs),
        oldest_begun=oldest_begun,
        oldest_begun_seconds=begun_seconds,
        undecided_rebuilds=len(begun.undecided),
        oldest_undecided=oldest_undecided,
        oldest_undecided_seconds=undecided_seconds,
        pending_parts=len(parts),
        oldest_pending_seconds=_age(min(parts, default=now), now),
    )
    return Waiting(backlog, manifests)


def _weights(
    state: State, infos: Sequence[ObjectInfo], cache: StatusCache, allowed_prefixes: Sequence[str]
) -> dict[tuple[str, str], int]:
    """The bytes that a sample of manifests name, by the manifest's URI and ETag."""

    def weigh(info: ObjectInfo) -> int | None:
        known = cache.weights.get(_key(info))
        if known is not None:
            return known
        try:
            manifest = read_waiting_manifest(state, info, allowed_prefixes=allowed_prefixes)
        except ManifestError:
            return 0  # it will be a dead letter
        except (ObjectNotFound, StuckError):
            return None  # done since the listing, or unreadable
        return sum(file.weight_bytes for file in manifest.files)

    readable = [info for info in infos if info.size_bytes <= READ_MAX_BYTES]
    stride = max(1, -(-len(readable) // MANIFESTS_READ))
    sample = readable[::stride]
    found = zip(sample, map_ordered(weigh, sample), strict=True)
    cache.weights = {_key(info): weight for info, weight in found if weight is not None}
    return cache.weights


def _bytes_per_manifest_byte(infos: Sequence[ObjectInfo], weights: dict[tuple[str, str], int]) -> float | None:
    """The input bytes per byte of a manifest: a manifest is the longer, the more files it names."""
    length = sum(info.size_bytes for info in infos if _key(info) in weights)
    return sum(weights.values()) / length if length else None


def _key(info: ObjectInfo) -> tuple[str, str]:
    return info.uri, info.etag


def _oldest(begun: Mapping[str, datetime], now: datetime) -> tuple[str, float]:
    """The manifest that was begun first and the time since then; empty and 0 if there is none."""
    first = min(begun, key=lambda each: begun[each], default="")
    return first, _age(begun[first], now) if first else 0.0


def _age(moment: datetime, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds())


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
    rules: Rules
    allowed_prefixes: Sequence[str]  # folders that input may be in
    target_file_bytes: int  # how large an output file should be
    registry: Callable[[], SchemaRegistry]  # makes a schema registry that has read nothing yet
    glue: Callable[[], JobRuns] | None = None  # connects to the runs on Glue; None where the job does not run there
    no_cost: str = NOT_ON_GLUE  # why no cost is shown without `glue`
    table: ListedTable | None = None  # the table of the output; its catalog is not asked
    logs: LogWatch | None = None  # the topics and streams that jobs land
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
        failures = FailureReader(state=self.state, cache=cache)
        columns, schema = self._schema_seen()
        facts = Facts(
            as_of=now,
            runs=living,
            last_heartbeat_at=last_heartbeat_at,
            backlog=waiting.backlog,
            drain=drain(waiting.backlog, found_rates, is_running=bool(living)),
            dead_letters=failures.dead_letters(recent),
            quarantined_files=failures.files(recent),
            recent=tuple(recent),
            columns=columns,
            schema=schema,
            shards=shards_among(living, self.rules.shards),
            table=None if self.table is None else table_seen(self.state, self.table, now),
            logs=() if self.logs is None else self.logs.seen(now),
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
        cache.keep_only(committed)
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
        known, latest = self.cache.arrivals, recent[-LATENCY_COMMITS:]
        keys = [each.key for each in latest if each.manifest_id not in known]
        for each in accounts(self.state, Scope(keys=keys, details=Detail.ACCEPTED | Detail.DONE)):
            if each.accepted is not None and each.done is not None and each.fault is None:
                commit = each.commit
                known[each.id] = () if commit is None else arrival_seconds(each.accepted, commit, each.done.done_at)
        return [found for each in latest if (found := known.get(each.manifest_id))]

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

"""Reads the job's status. The cost depends on open and recent work, not on finished work."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.control.gathering import living_runs
from compactor.core.distributions import distribution_of
from compactor.core.documents.changes import DeadLetter
from compactor.core.documents.counts import bytes_per_byte
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import ManifestError, ObjectNotFound, RecordUnreadable, StuckError
from compactor.core.layout import id_from_name, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.later_rows import Version
from compactor.ledger.accounts.reading import Detail, Scope, accounts, accounts_of, kept_letters
from compactor.ledger.accounts.replaced import replaced_files
from compactor.ledger.accounts.settling import Settling, named_versions
from compactor.ledger.backlog import Backlog, read_started, read_waiting_manifest
from compactor.ledger.heartbeat import Runs
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.housekeeping import failing_tasks
from compactor.ledger.landing.progress import LogWatch
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.status.health import Rules, health, shards_among
from compactor.ops.status.values import (
    DeadLetters,
    Facts,
    FilesQuarantined,
    SchemaSeen,
    Status,
    drain,
    misfits,
    output_sizes,
    rates,
    rejects,
)
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import NO_COLUMNS, ColumnsUsed
from compactor.table.standing import ListedTable, table_seen

Weights = dict[tuple[str, str], int]
"""The input bytes of waiting manifests, by the manifest's URI and ETag."""

MANIFESTS_READ = 200
"""How many waiting manifests are read for their input bytes. The bytes of the others are extrapolated."""

READ_MAX_BYTES = 4 * 1024 * 1024  # a longer manifest, of about 20,000 files, is not read; its bytes are extrapolated


@dataclass(frozen=True, slots=True)
class Waiting:
    """The backlog, manifest by manifest."""

    backlog: Backlog
    # The id in the name, the arrival and the input bytes of each manifest. Unread bytes are extrapolated
    manifests: Sequence[tuple[str, datetime, float]]
    weights: Weights  # of those that were read


def read_waiting(state: State, now: datetime, known: Weights, *, allowed_prefixes: Sequence[str]) -> Waiting:
    """Read the backlog. At most `MANIFESTS_READ` unknown manifests are read, evenly spread."""
    infos = [info for info in state.store.list(state.layout.manifests_folder) if is_delivery(info.uri)]
    weights = _weights(state, infos, known, allowed_prefixes)
    per_byte = _bytes_per_manifest_byte(infos, weights)
    manifests = [
        (id_from_name(info.uri), info.modified_at, float(weights.get(_key(info), info.size_bytes * (per_byte or 0.0))))
        for info in infos
    ]
    begun = read_started(state)
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
    return Waiting(backlog, manifests, weights)


def _weights(state: State, infos: Sequence[ObjectInfo], known: Weights, allowed_prefixes: Sequence[str]) -> Weights:
    """The weights of a sample of manifests."""

    def weigh(info: ObjectInfo) -> int | None:
        if _key(info) in known:
            return known[_key(info)]
        try:
            manifest = read_waiting_manifest(state, info, allowed_prefixes=allowed_prefixes)
        except ManifestError:
            return 0  # it will be a dead letter
        except (ObjectNotFound, StuckError):
            return None  # finished since the listing, or unreadable
        return sum(file.weight_bytes for file in manifest.files)

    readable = [info for info in infos if info.size_bytes <= READ_MAX_BYTES]
    stride = max(1, -(-len(readable) // MANIFESTS_READ))
    sample = readable[::stride]
    found = zip(sample, map_ordered(weigh, sample), strict=True)
    return {_key(info): weight for info, weight in found if weight is not None}


def _bytes_per_manifest_byte(infos: Sequence[ObjectInfo], weights: Weights) -> float | None:
    """The input bytes per byte of a manifest: manifests grow with the number of files."""
    length = sum(info.size_bytes for info in infos if _key(info) in weights)
    return sum(weights.values()) / length if length else None


def _key(info: ObjectInfo) -> tuple[str, str]:
    return info.uri, info.etag


def _oldest(begun: Mapping[str, datetime], now: datetime) -> tuple[str, float]:
    """The first manifest to start and the time since then; empty and 0 if there is none."""
    first = min(begun, key=lambda each: begun[each], default="")
    return first, _age(begun[first], now) if first else 0.0


def _age(moment: datetime, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds())


LETTERS_READ = 50  # how many dead letters are read, the latest ones

COMMITS_READ = 16  # how many commits with quarantined files are read, the latest ones

LATENCY_COMMITS = 16  # how many commits are read for their files' latency, the latest ones

_NAMED = 5


def dead_letters(state: State, recent: Sequence[RecentCommit]) -> DeadLetters:
    """The dead letters; only the latest are read."""
    kept = kept_letters(state, unsummarised_if_readable(state, begun_only=True))
    latest = dict(sorted(kept.waiting.items(), key=lambda letter: letter[1], reverse=True)[:LETTERS_READ])
    left, named = list[DeadLetter](), dict[str, list[Version]]()
    for each in accounts_of(state, list(latest), Detail.ACCEPTED | Detail.LINEAGE):
        if each.letter is None:
            expected = f"{state.layout.accepted(each.id)}: expected the record of a dead letter"
            left.append(_unreadable(each.id, latest[each.id], str(each.fault or expected)))
        elif not each.was_redriven:
            left.append(each.letter)
            named[each.id] = named_versions(each)
    settling = Settling(state)
    given_up = settling.dismissals(named)
    taken = (
        _taken_over(settling, {each: named[each] for each in named if each not in given_up}, recent) | given_up.keys()
    )
    letters = [each for each in left if each.manifest_id not in taken]
    reasons = Counter(letter.reason for letter in letters)
    looked_at = kept.manifests - (len(kept.waiting) - len(latest))
    return DeadLetters(kept.manifests, looked_at, len(letters), dict(reasons), tuple(letters[:_NAMED]))


def _taken_over(settling: Settling, named: Mapping[str, Sequence[Version]], recent: Sequence[RecentCommit]) -> set[str]:
    """The dead letters whose files have all been taken over by later manifests.

    If a redrive was interrupted, which is rare, all later manifests are read; otherwise only the latest commits.
    """
    ids = [each for each, versions in named.items() if versions]
    is_interrupted = dict(zip(ids, map_ordered(settling.was_interrupted, ids), strict=True))
    taken = settling.taken_over({each: named[each] for each in ids if is_interrupted[each]})
    others = {each: named[each] for each in ids if not is_interrupted[each]}
    taken |= settling.taken_over(others, [each.key for each in recent])
    return {*taken, *settling.duplicates([each for each in named if each not in taken])}


def _unreadable(manifest_id: str, written_at: datetime, fault: str) -> DeadLetter:
    return DeadLetter(
        manifest_id=manifest_id,
        date="",
        reason="unreadable",
        message=fault,
        source_uri="",
        run_id="",
        decided_at=written_at,
    )


def files_quarantined(state: State, recent: Sequence[RecentCommit]) -> FilesQuarantined:
    """Files quarantined by the latest commits and not settled. Summaries come oldest first."""
    latest_first = recent[::-1]
    asked = [each for each in latest_first if each.quarantined][:COMMITS_READ]
    quarantined = [*replaced_files(state), *_quarantined(state, asked)]
    since = min((each.started_at for each in quarantined), default=None)
    later = [each.key for each in recent if since is not None and each.decided_at > since]
    # If the log of redrives is unreadable, an operator has to check.
    checked = Settling(state).files(quarantined, later)
    files = [each for each in checked if not each.is_settled]
    return FilesQuarantined(
        commits=len(recent) if len(asked) < COMMITS_READ else latest_first.index(asked[-1]) + 1,
        open=len(files),
        by_status=dict(Counter(str(file.status) for file in files)),
        latest=tuple(files[:_NAMED]),
        by_cause=Counter(each.cause for each in files),
        dismissed=sum(bool(each.dismissed) for each in checked),
    )


def _quarantined(state: State, asked: Sequence[RecentCommit]) -> list[QuarantinedFile]:
    """The quarantined files of some commits. The summaries are a cache, so commits may be missing."""
    found = accounts(state, Scope(keys=[each.key for each in asked])) if asked else ()
    return [file for each in found if each.fault is None and each.outcome is not None for file in each.quarantined]


def _arrivals(state: State, recent: Sequence[RecentCommit]) -> list[float]:
    """The seconds from arrival to visible for each file in the latest finished commits."""
    keys = [each.key for each in recent[-LATENCY_COMMITS:]]
    found = accounts(state, Scope(keys=keys, details=Detail.ACCEPTED | Detail.DONE)) if keys else ()
    return [
        seconds
        for each in found
        if each.accepted is not None and each.commit is not None and each.done is not None and each.fault is None
        for seconds in arrival_seconds(each.accepted, each.commit, each.done.done_at)
    ]


@dataclass(slots=True, kw_only=True)
class StatusReader:
    """Reads the status of the job.

    One reading lists eight folders (the watched prefix, pending, open, failed, runs, schemas, and the two of what
    expired) and the ring of latest commits. It reads at most `MANIFESTS_READ` waiting manifests, `RECENT_SLOTS`
    summaries, three records of each of `LATENCY_COMMITS` commits, and the redrive logs of `LETTERS_READ` dead letters
    and `COMMITS_READ` commits, each of a few records; if files are quarantined, also the commits of the ring since
    then; one record of each housekeeping task; and with a table one record of each job. A later reading does not read
    waiting manifests again.
    """

    state: State
    runs: Runs
    rules: Rules
    allowed_prefixes: Sequence[str]  # input folders
    target_file_bytes: int  # target size of an output file
    registry: Callable[[], SchemaRegistry]  # creates a schema registry that has read nothing yet
    table: ListedTable | None = None  # the output's table; its catalog is not queried
    logs: LogWatch | None = None  # the topics and streams that jobs land
    weights: Weights = field(default_factory=dict)  # the last reading's results for waiting manifests

    def read(self) -> Status:
        """Read the current status. Errors of the store are a `TryAgainError` or an `OperatorError`."""
        now, state = self.state.clock.now(), self.state
        living = living_runs(self.runs)
        last_heartbeat_at = None if living else self.runs.last_sign_at()
        recent = state.ledger.recent()
        committed = {commit.manifest_id for commit in recent}
        waiting = read_waiting(state, now, self.weights, allowed_prefixes=self.allowed_prefixes)
        self.weights = waiting.weights
        arrivals = [(moment, length) for each, moment, length in waiting.manifests if each not in committed]
        found_rates = rates(recent, arrivals, now, slots=RECENT_SLOTS)
        columns, schema = self._schema_seen()
        facts = Facts(
            as_of=now,
            runs=living,
            last_heartbeat_at=last_heartbeat_at,
            backlog=waiting.backlog,
            drain=drain(waiting.backlog, found_rates, is_running=bool(living)),
            dead_letters=dead_letters(state, recent),
            quarantined_files=files_quarantined(state, recent),
            recent=tuple(recent),
            columns=columns,
            schema=schema,
            shards=shards_among(living, self.rules.shards),
            table=None if self.table is None else table_seen(state, self.table, now),
            logs=() if self.logs is None else self.logs.seen(now),
            housekeeping=failing_tasks(state, () if self.table is None else self.table.upkeep),
        )
        return Status(
            **vars(facts),
            state=health(facts, self.rules),
            rates=found_rates,
            latency=None if self.rules.sla_seconds is None else distribution_of(_arrivals(state, recent)).spread,
            rejects=rejects(recent),
            misfits=misfits(recent),
            output_bytes_per_input_byte=bytes_per_byte(
                sum(each.output_bytes for each in recent), sum(each.input_bytes for each in recent)
            ),
            sizes=output_sizes(recent, self.target_file_bytes),
            folder=self.rules.suggest.folder,
            expired=expired_seen(state),
        )

    def _schema_seen(self) -> tuple[ColumnsUsed, SchemaSeen]:
        """The latest schema version. An unreadable version does not affect the rest."""
        registry = self.registry()
        try:
            latest = registry.latest()
        except (ObjectNotFound, RecordUnreadable) as exc:
            return NO_COLUMNS, SchemaSeen(0, 0, "", None, str(exc))
        newest = latest.columns[-1].name if latest.columns else ""
        changed_at = latest.created_at if latest.version else None
        return registry.used(latest), SchemaSeen(latest.version, len(latest.columns), newest, changed_at)

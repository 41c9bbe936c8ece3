"""Reads the data for a report: one listing of the ledger, and only the records of the period."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain, islice, repeat

from compactor.core.errors import ObjectNotFound, RecordUnreadable, StagingError
from compactor.core.layout import ManifestKey, done_name, schema_number
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, accounts, folded, kept_letters
from compactor.ledger.accounts.replaced import replaced_files
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.housekeeping import failing_tasks
from compactor.ledger.landing.progress import LogWatch
from compactor.ledger.state import State
from compactor.ledger.visible import expired_seen
from compactor.ops.redrive.reject_lines import RejectRow, reject_rows
from compactor.ops.report import figures
from compactor.ops.report.figures import SHOWN_BYTES, SHOWN_VERSIONS, AddedColumn, Sample, Schema, SchemaChange
from compactor.ops.report.period import MAX_BUCKETS, Period, step_for
from compactor.ops.report.tallies import (
    CLOCK_TOLERANCE_SECONDS,
    CommitFacts,
    DeadLetterFacts,
    RejectingManifests,
    Tallies,
    commit_facts,
    moment_of,
)
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import SchemaVersion
from compactor.table.standing import ListedTable, table_seen


def samples_of(store: ObjectStore, uris: Iterable[str], reason: str, limit: int) -> list[Sample]:
    """The first lines that a manifest rejected for a reason, at most `limit`. Unreadable files have none."""
    found: list[Sample] = []
    for uri in uris:
        with suppress(StagingError):  # a report of the rest is worth more; `verify` reports the damage
            rows = reject_rows(store, uri, lambda _, found_reason: found_reason == reason)
            found += (_sample(row) for row in islice(rows, limit - len(found)))
    return found


def _sample(row: RejectRow) -> Sample:
    head = row.raw[:SHOWN_BYTES].decode(errors="backslashreplace")
    return Sample(row.source_uri, row.line_number, head, len(row.raw))


SHOWN_COLUMNS = 40  # per version


def schema_of(state: State, registry: SchemaRegistry, period: Period) -> Schema:
    """The latest version, and the newest `SHOWN_VERSIONS` versions of a period.

    Raises:
        RecordUnreadable: One of them is damaged.
    """
    near = period.widened(CLOCK_TOLERANCE_SECONDS)
    written = {
        number: info.modified_at
        for info in state.store.list(state.layout.schemas_folder)
        if (number := schema_number(info.uri)) is not None and near.holds(info.modified_at)
    }
    newest = ((registry.version(number), written[number]) for number in sorted(written)[-SHOWN_VERSIONS:])
    changes = tuple(_change(schema) for schema, at in newest if period.holds(moment_of(schema.created_at, at)))
    latest = registry.latest()
    return Schema(latest.version, len(latest.columns), changes)


def _change(schema: SchemaVersion) -> SchemaChange:
    added = [column for column in schema.columns if column.added_in == schema.version]
    return SchemaChange(
        version=schema.version,
        created_at=schema.created_at,
        manifest_id=schema.manifest_id,
        columns=len(schema.columns),
        added_columns=len(added),
        added=tuple(AddedColumn(each.name, each.type, each.source_uri) for each in added[:SHOWN_COLUMNS]),
    )


SAMPLED_REASONS = 20
SAMPLES = 3  # per reason, from as many manifests if possible


def read_figures(
    state: State,
    registry: SchemaRegistry,
    period: Period,
    *,
    target_file_bytes: int,
    sla_seconds: float | None = None,
    with_samples: bool = False,
    table: ListedTable | None = None,
    logs: LogWatch | None = None,
) -> figures.Figures:
    """Read the figures of a period. Writes nothing, and does not query the table's catalog.

    Costs one listing of the schema versions and of the ledger, without closed dates outside the period; three reads per
    manifest of the period; and a few hundred reads for what is shown line by line, plus the commits since the first
    dead letter or quarantined file that is shown and was not redriven. Memory grows only with the manifests of the few
    dates that are listed ahead. Some rejected lines are read only with `with_samples`.
    """
    tallies, now = Tallies(period, sla_seconds), state.clock.now()
    read = partial(_facts, state, period, target_file_bytes)
    near = period.widened(CLOCK_TOLERANCE_SECONDS)
    scope = Scope(since=near.since, until=near.until, details=Detail.ACCEPTED | Detail.DONE)
    for records, found in folded(state, scope, lambda each: (each.records, read(each))):
        tallies.add_records(records)
        if isinstance(found, CommitFacts):
            tallies.add(found)
        elif isinstance(found, DeadLetterFacts):
            tallies.add_dead_letter(found)
        elif found is not None:
            tallies.add_unreadable(found)
    try:
        schema = schema_of(state, registry, period)
    except (RecordUnreadable, ObjectNotFound) as exc:
        # No version is shown: all later ones build on the damaged one.
        schema = figures.Schema(0, 0, ())
        tallies.add_unreadable(str(exc))
    kept = kept_letters(state, unsummarised_if_readable(state, begun_only=True)).manifests
    settling, shown = Settling(state), list(tallies.dead_letters)
    letters = settling.letters(
        [figures.DeadLetterLine(each.manifest_id, each.reason, each.message, done_at=moment) for each, moment in shown]
    )
    replaced = [each for each in replaced_files(state) if period.holds(each.committed_at)]
    files = settling.files([*replaced, *tallies.for_operator])
    return figures.Figures(
        period=period,
        totals=tallies.totals(),
        bucket_seconds=step_for(period, MAX_BUCKETS),
        buckets=tuple(tallies.buckets()),
        target_file_bytes=target_file_bytes,
        sizes=tallies.sizes,
        rejects=_rejects(state.store, tallies, sampled=SAMPLED_REASONS if with_samples else 0),
        dead_letters=figures.DeadLetters.of(kept, tallies.dead_letters_by_reason, letters),
        quarantined_files=figures.QuarantinedFiles.of(tallies.counts.files_by_status, files),
        schema=schema,
        unreadable=tallies.unreadable,
        expired=expired_seen(state),
        table=None if table is None else table_seen(state, table, now),
        logs=() if logs is None else logs.seen(now),
        housekeeping=failing_tasks(state, () if table is None else table.upkeep),
    )


def _facts(
    state: State, period: Period, target_file_bytes: int, account: Account
) -> CommitFacts | DeadLetterFacts | str | None:
    """A manifest's figures; a message if its records are unreadable, None if it is not in the period."""
    written_at, done = account.records.get(done_name(1)), account.done
    if account.fault is not None:
        return str(account.fault) if written_at is not None and period.holds(written_at) else None
    if written_at is None or done is None:
        return None
    moment = moment_of(done.done_at, written_at)
    if not period.holds(moment):
        return None
    if account.letter is not None:
        return DeadLetterFacts(account.letter, moment, is_clock_off=moment != done.done_at)
    if account.accepted is None or account.commit is None:
        return f"{state.layout.accepted(account.id)}: no such record; expected the manifest's acceptance"
    source = account.commit.rejects_of
    with_source = bool(source) and _is_of(state, period, ManifestKey(account.key.date, source))
    return commit_facts(
        account.accepted,
        account.commit,
        done,
        moment=moment,
        decided_at=account.first_decided_at or account.commit.decided_at,
        target_file_bytes=target_file_bytes,
        with_source=with_source,
    )


def _is_of(state: State, period: Period, key: ManifestKey) -> bool:
    """Whether a manifest became visible in the period."""
    [account] = accounts(state, Scope(keys=[key], details=Detail.DONE))
    if account.done is None:
        return False
    return period.holds(moment_of(account.done.done_at, account.records[done_name(1)]))


def _rejects(store: ObjectStore, tallies: Tallies, *, sampled: int) -> tuple[figures.RejectReason, ...]:
    """All reasons, the most frequent first; the first `sampled` of them with samples."""
    lines = tallies.counts.rejects_by_reason
    ordered = sorted((each for each in lines if lines[each] > 0), key=lambda each: (-lines[each], each))
    rejecting = [(each, tallies.rejecting[each]) for each in ordered]
    found = map_ordered(partial(_samples, store), rejecting[:sampled])
    return tuple(
        figures.RejectReason(reason, lines[reason], some.manifests, samples)
        for (reason, some), samples in zip(rejecting, chain(found, repeat(())), strict=False)
    )


def _samples(store: ObjectStore, item: tuple[str, RejectingManifests]) -> tuple[figures.Sample, ...]:
    reason, manifests = item[0], list(item[1].newest)
    each = -(-SAMPLES // len(manifests))
    found = [sample for files in manifests for sample in samples_of(store, files, reason, each)]
    return tuple(found[:SAMPLES])

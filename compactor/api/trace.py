"""Tells where a file or a manifest is, and where an output comes from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from compactor.api.arguments import Place, settings_of
from compactor.core.errors import SettingsError
from compactor.core.kafka.ranges import RANGE_EXPECTED, is_kafka, is_range
from compactor.core.kinesis.places import GAP_EXPECTED, RECORD_EXPECTED, is_kinesis, is_record_or_gap
from compactor.core.layout import MANIFEST_ID, canonical
from compactor.core.rules.next_steps import Cause, NextStep, giving_up, next_step
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ops.trace.tables import TracedTable
from compactor.ops.trace.trace import Trace, TracedAttempt, TracedKind, TracedRedrive, TracedReject, TraceState
from compactor.ops.trace.tracer import SEARCHED_DAYS, Tracer
from compactor.settings.places import parse_place
from compactor.settings.settings import Settings
from compactor.wiring.job.app import App


@dataclass(frozen=True, slots=True)
class TraceResult:
    """What is known of a file, a manifest or an output. Texts are empty where they do not apply.

    Attributes:
        found: Whether a record names it; without one, `compactor trace` ends with exit code 1.
        needs_operator: Whether it is a dead letter, or a version of it is quarantined, and that is not settled; then
            it ends with exit code 3.
        uri: What was asked for: a URI or a manifest id.
        kind: `file`, `manifest`, `output` or `rejects`.
        state: One of `unknown`, `claimed`, `pending`, `waiting`, `in_work`, `decided`, `done`, `quarantined` and
            `dead_lettered`.
        meaning: The state in words.
        quarantined: The quarantined versions of an input file, the first one first, or the quarantined files of a
            manifest, with what settled each.
        message: Why it was quarantined or dead-lettered, or what else is known.
        exists: Whether the object exists now; for a manifest, in any of its places.
        manifest_id: The manifest that names it, or wrote it.
        manifest_uri: Where that manifest's object is now.
        date: The date of that manifest.
        dated_by: What gave an input file that date, in words.
        attempts: The attempts at the manifest.
        next_attempt_at: The earliest time of the next attempt after a failed one.
        lines: Lines of an input file that is compacted, as they are now; None for anything else.
        rows: Those that are rows; None as above.
        rejected_lines: Those that are rejected; None as above.
        blank_lines: Those that are blank; None as above.
        rejects_by_reason: The rejected lines by reason.
        rejected: The first rejected lines; `rejects` has all.
        outputs: The Parquet files of the manifest, which have the rows of an input file.
        rejects_files: The files of rejects that have rejects of it.
        origin: The file whose rejected lines this file holds.
        redriven_from: The manifest that this one redrives.
        redriven_as: Its redrives.
        settled_by: Of a dead letter that was not redriven, the manifest that took over its last file.
        fixes: What to do before these commands.
        next_moves: Commands to run next; the last one may give a quarantined file up.
        searched: Where it was searched for, if it was not found by its claim.
        table: The way of its manifest's rows into the table of the output: `listed`, `waiting`, `held_back` or
            `unlisted`; None without rows or without a table.
    """

    found: bool
    needs_operator: bool
    uri: str
    kind: TracedKind
    state: str
    meaning: str
    quarantined: tuple[QuarantinedFile, ...]
    message: str
    exists: bool
    manifest_id: str
    manifest_uri: str
    date: str
    dated_by: str
    attempts: tuple[TracedAttempt, ...]
    next_attempt_at: datetime | None
    lines: int | None
    rows: int | None
    rejected_lines: int | None
    blank_lines: int | None
    rejects_by_reason: Mapping[str, int]
    rejected: tuple[TracedReject, ...]
    outputs: tuple[str, ...]
    rejects_files: tuple[str, ...]
    origin: str
    redriven_from: str
    redriven_as: tuple[TracedRedrive, ...]
    settled_by: str
    fixes: tuple[str, ...]
    next_moves: tuple[str, ...]
    searched: str
    table: TracedTable | None = None

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """The result of a trace."""
        counts = trace.counts
        return cls(
            found=trace.state is not TraceState.UNKNOWN,
            needs_operator=trace.needs_operator,
            uri=trace.uri,
            kind=trace.kind,
            state=trace.state.value,
            meaning=trace.meaning,
            quarantined=tuple(trace.quarantined),
            message=trace.message,
            exists=trace.exists,
            manifest_id=trace.manifest_id,
            manifest_uri=trace.manifest_uri,
            date=trace.date,
            dated_by=trace.dated_by,
            attempts=tuple(trace.attempts),
            next_attempt_at=trace.next_attempt_at,
            lines=counts.lines if counts else None,
            rows=counts.rows if counts else None,
            rejected_lines=counts.rejected_lines if counts else None,
            blank_lines=counts.blank_lines if counts else None,
            rejects_by_reason=dict(counts.rejects_by_reason) if counts else {},
            rejected=tuple(trace.rejected),
            outputs=tuple(trace.outputs),
            rejects_files=tuple(trace.rejects),
            origin=trace.origin,
            redriven_from=trace.redriven_from,
            redriven_as=tuple(trace.redriven_as),
            settled_by=trace.settled_by,
            fixes=tuple(trace.fixes),
            next_moves=tuple(trace.next_moves),
            searched=trace.searched,
            table=trace.table,
        )


def trace(dst: Place, file: Place, *, days: int = SEARCHED_DAYS) -> TraceResult:
    """Tell where a file, a manifest or an output is, as `compactor trace` does.

    Args:
        dst: DST of `compact`, the place of its state, or a settings file.
        file: A path, a URI or a manifest id: of an input file, a manifest, an output file or a rejects file.
        days: How many dates of the ledger to search for a file without a claim: its own date, then the newest.

    Returns:
        What is known of it. What no record names is `found=False`, and no error.

    Raises:
        SettingsError: There are no settings at `dst`, or `file` cannot name anything.
        AccessError: Something may not be read.
        StoreUnavailable: The store fails; call it again.
    """
    if days < 1:
        raise SettingsError([f"days: {days} -> expected 1 or more"])
    return TraceResult.of(find_trace(settings_of(dst), os.fspath(file), days))


def find_trace(settings: Settings, thing: str, days: int) -> Trace:
    """Trace a thing; a name without `/` may be a manifest's id or a path.

    Raises:
        SettingsError: It cannot name anything, or it is a folder.
    """
    found = _found(App(settings).tracer, thing, days)
    if found.state is TraceState.UNKNOWN and (thing.endswith("/") or Path(thing).is_dir()):
        expected = "a file, an output file, a rejects file or a manifest"
        raise SettingsError([f"{thing} is a folder -> expected {expected}; `compactor status` is about all of them"])
    suggest = settings.suggestions
    steps = _steps(found, suggest)
    found.fixes = [each.fix for each in steps if each.fix]
    own = [command for each in steps for command in each.commands]
    found.next_moves = list(dict.fromkeys([*own, *map(suggest.of, found.next_moves)]))
    return found


def _steps(found: Trace, suggest: Suggestions) -> list[NextStep]:
    """What to do about quarantined versions, and about one that has replaced another."""
    left = [each for each in found.quarantined if not each.is_settled]
    steps = [next_step(each.cause, suggest, each.manifest_id) for each in left]
    if left and found.kind == "file":
        steps.append(NextStep("", (giving_up(left[-1].cause, suggest, found.uri),)))
    if found.is_replaced and suggest.again_with():
        steps.append(next_step(Cause.REPLACED, suggest))
    return list(dict.fromkeys(steps))


def _found(tracer: Tracer, thing: str, days: int) -> Trace:
    if "/" in thing or not MANIFEST_ID.fullmatch(thing):
        return tracer.trace(absolute_uri(thing), days=days)
    found = tracer.trace_manifest(thing)
    if found.state is not TraceState.UNKNOWN:
        return found
    as_file = tracer.trace(absolute_uri(thing), days=days)
    if as_file.state is TraceState.UNKNOWN:
        as_file.searched = f"for a manifest {found.searched}; for a file {as_file.searched}"
    return as_file


def absolute_uri(uri: str) -> str:
    """The URI as given; a relative path starts at the current working directory.

    Raises:
        SettingsError: It cannot name anything.
    """
    if is_kafka(uri):
        if not is_range(uri):
            raise SettingsError([f"{uri!r} -> expected kafka://cluster/topic/partition?offset=N, or {RANGE_EXPECTED}"])
        return uri
    if is_kinesis(uri):
        if not is_record_or_gap(uri):
            raise SettingsError([f"{uri!r} -> expected {RECORD_EXPECTED}, or {GAP_EXPECTED}"])
        return uri
    if canonical(uri).startswith(("s3://", "/")):
        return uri
    try:
        return parse_place(uri, any_name=True)
    except ValueError as exc:
        raise SettingsError([f"{uri!r} -> expected s3://bucket/key, file:///path or a path ({exc})"]) from exc

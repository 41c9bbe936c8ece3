"""Follows an input file, a manifest, or a file of output or rejects through all records."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import orjson

from compactor.core.documents.changes import Commit, Part
from compactor.core.documents.counts import file_counts
from compactor.core.documents.records import NEEDS_OPERATOR, Accepted, FileReport, FileStatus, RedrivenInput
from compactor.core.errors import AccessError, ObjectNotFound, StagingError
from compactor.core.inputs.dates import RULES
from compactor.core.layout import MANIFEST_ID, base_name, canonical, id_from_name, is_within
from compactor.core.logs.names import is_log
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.rules.attempts import AttemptState, RetryRules, due_at
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import quoted
from compactor.core.versions import described_version
from compactor.ledger.accounts.account import Account, AccountState, Kind
from compactor.ledger.accounts.reading import account_of, is_there, redriven_lines
from compactor.ledger.accounts.settling import settled
from compactor.ledger.history.redrive_log import RedriveLogEntry
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.redrive.giving_up import lost_files
from compactor.ops.redrive.reject_lines import RedrivenLineNumbers, reject_rows
from compactor.ops.trace.finding import InputFinder, landed_record
from compactor.ops.trace.tables import traced_table
from compactor.ops.trace.trace import (
    TracedAttempt,
    TracedRedrive,
    TracedReject,
    TraceResult,
    TraceState,
    move_to_plan,
    move_to_see,
    moves_of_manifest,
)
from compactor.sources.candidates import NOT_DATA, not_data_reason
from compactor.table.standing import ListedTable

SEARCHED_DAYS = 31

MOST_LINES = 10

_STATES = {
    AccountState.UNKNOWN: TraceState.UNKNOWN,
    AccountState.UNWRITTEN: TraceState.CLAIMED,
    AccountState.REVOKED: TraceState.CLAIMED,
    AccountState.WAITING: TraceState.WAITING,
    AccountState.IN_WORK: TraceState.IN_WORK,
    AccountState.DECIDED: TraceState.DECIDED,
    AccountState.DONE: TraceState.DONE,
    AccountState.DEAD_LETTER: TraceState.DEAD_LETTERED,
}

_PARTS: Mapping[Part, str] = {
    "archive": "archived manifest",
    "rows": "rows",
    "rejects": "rejects",
    "redriven": "redriven lines",
}


@dataclass(frozen=True, kw_only=True)
class Tracer:
    """Follows files and manifests. Writes nothing."""

    state: State
    rules: RetryRules  # when a manifest is retried
    inputs: InputFinder
    table: ListedTable | None = None  # the table that lists the output; None without one

    def trace_manifest(self, manifest_id: str) -> TraceResult:
        """Follow a manifest by its id."""
        trace = TraceResult(manifest_id, "manifest")
        account = settled(self.state, account_of(self.state, self.inputs.sealed_into(manifest_id)))
        if account.state is AccountState.UNKNOWN:
            searched = f"the ledger in {self.state.layout.state} and {self.state.layout.manifests_folder}"
            return replace(trace, searched=searched)
        trace = replace(self._with_account(trace, account), exists=bool(account.uri))
        commit, manifest = account.commit, account.accepted.manifest if account.accepted is not None else None
        gone: Mapping[Part, str] = {}
        if commit is not None:
            gone = self._expired_parts(commit)
            trace = replace(
                trace,
                files=[*commit.files],
                outputs=[] if "rows" in gone else [file.final for file in commit.outputs],
                rejects=[] if "rejects" in gone else [file.final for file in commit.rejects],
                expired=[*gone.values()],
                quarantined=[*account.quarantined],
            )
        elif account.letter is not None:
            trace = replace(trace, settled_by=account.settled_by)
        elif manifest is not None and not trace.message:
            trace = replace(trace, message=f"{len(manifest.files)} files")
        trace = replace(trace, next_moves=moves_of_manifest(account, _redrivable(gone)))
        return self._with_table(self._with_lost(trace, account), account)

    def _with_account(self, trace: TraceResult, account: Account) -> TraceResult:
        accepted, made_by, due, message = account.accepted, account.made_by, None, ""
        if account.state is AccountState.UNWRITTEN:
            again = "plan" if made_by is not None and made_by.kind == "planned" else "redrive"
            message = f"its redrive is on record, but its manifest was not written yet; {again} again"
        elif account.state is AccountState.REVOKED:
            message = f"manifest {account.id} was revoked by its planner; plan again"
        elif account.letter is not None:
            message = f"{account.letter.reason}: {account.letter.message}"
        if account.outcome is None and accepted is not None:
            due = due_at(account.id, account.attempts, self.rules, now=self.state.clock.now())
        return replace(
            trace,
            state=_STATES[account.state],
            manifest_id=account.id,
            manifest_uri=account.uri,
            date=accepted.date if accepted is not None else "",
            dated_by=_dated_by(trace.uri, accepted) if accepted is not None else "",
            attempts=list(map(_attempt, account.attempts.unfolded)),
            earlier_attempts=account.attempts.folded.upto if account.attempts.folded else 0,
            next_attempt_at=due,
            redriven_from=made_by.source if made_by is not None else "",
            redriven_as=list(map(_redrive, account.redrives)),
            erased=_erased_words(account.commit) if account.commit is not None else "",
            reason=account.letter.reason if account.letter is not None else "",
            message=message or trace.message,
        )

    def _with_lost(self, trace: TraceResult, account: Account) -> TraceResult:
        """Add what was lost of a manifest's output and rejects."""
        lost = list(lost_files(self.state, account)) if trace.state is TraceState.DONE else []
        moves = (
            [f"compactor rebuild --manifest {quoted(account.id)}"] if any(not each.settled_by for each in lost) else []
        )
        gone = {each.uri for each in lost}
        return replace(
            trace,
            state=TraceState.LOST if lost else trace.state,
            lost=lost,
            outputs=[uri for uri in trace.outputs if uri not in gone],
            rejects=[uri for uri in trace.rejects if uri not in gone],
            next_moves=[*moves, *trace.next_moves],
        )

    def _with_table(self, trace: TraceResult, account: Account) -> TraceResult:
        if self.table is None or account.commit is None:
            return trace
        now = self.state.clock.now()
        table = traced_table(self.state, self.table, account.commit, now, is_done=account.is_done)
        moves = [*trace.next_moves]
        if table is not None and table.state in {"unlisted", "held_back"}:
            moves.append("compactor table repair")
        if table is not None and table.state == "held_back":
            moves.append(f"compactor rebuild --manifest {quoted(account.id)}")
        return replace(trace, table=table, next_moves=moves)

    def _expired_parts(self, commit: Commit) -> dict[Part, str]:
        """Each expired part of a manifest, in words, such as `rows expired on 2026-02-01 under ...`."""
        had = {"archive": True, "rows": commit.outputs, "rejects": commit.rejects, "redriven": commit.rejects_of}
        visible = Visible(self.state)
        found = {part: visible.deletion(part, commit.key, commit.generation) for part in _PARTS if had[part]}
        return {part: f"{_PARTS[part]} {record.words}" for part, record in found.items() if record is not None}

    def trace(self, uri: str, *, days: int = SEARCHED_DAYS) -> TraceResult:
        """Follow an output file, a rejects file, a manifest's object, a record of a log, or an input file.

        Args:
            uri: What to follow.
            days: How many dates of the ledger to search for an input file without a claim: its own, then the newest.
        """
        output, rejects = self.state.layout.output_owner(uri), self.state.layout.rejects_owner(uri)
        if output is not None:
            return self._trace_written(TraceResult(uri, "output"), output.id)
        if rejects is not None:
            return self._trace_written(TraceResult(uri, "rejects"), rejects.id)
        manifest_id = self._id_of_object(uri)
        if manifest_id is not None:
            trace = replace(self.trace_manifest(manifest_id), uri=uri, exists=is_there(self.state, uri))
            if trace.state is TraceState.UNKNOWN and trace.exists and is_within(uri, self.state.layout.manifests):
                # It has no record yet, and its name is not its id.
                trace = replace(trace, state=TraceState.WAITING, manifest_id=manifest_id, manifest_uri=uri)
            is_waiting = trace.state is TraceState.WAITING
            return replace(trace, message=self._why_unreadable(uri)) if is_waiting else trace
        return self._trace_landed(uri, days) if is_log(uri) else self._trace_input(uri, days)

    def _id_of_object(self, uri: str) -> str | None:
        """The id of the manifest whose object is or was at a URI; None if manifests have no object there."""
        if is_within(uri, self.state.layout.manifests):
            return self._delivered_id(uri)
        if is_within(uri, self.state.layout.failed_folder):
            return base_name(uri).removesuffix(".json").removesuffix(".reason")
        archived = self.state.layout.archived_key(uri)
        return archived.id if archived else None

    def _delivered_id(self, uri: str) -> str:
        """The id inside an object of the watched prefix; without one, the id in its name."""
        try:
            document = orjson.loads(self.state.store.read(uri))
        except (AccessError, ObjectNotFound, orjson.JSONDecodeError):
            document = None
        inside = document.get("manifest_id") if isinstance(document, dict) else None
        return inside if isinstance(inside, str) and MANIFEST_ID.fullmatch(inside) else id_from_name(uri)

    def _why_unreadable(self, uri: str) -> str:
        try:
            self.state.store.read_range(uri, 0, 1)
        except AccessError as exc:
            return str(exc)
        except ObjectNotFound:  # done meanwhile
            pass
        return ""

    def _trace_written(self, trace: TraceResult, manifest_id: str) -> TraceResult:
        trace = replace(trace, exists=self.state.store.stat(trace.uri) is not None)
        account = account_of(self.state, manifest_id) if manifest_id else None
        commit = account.commit if account is not None else None
        part: Part = "rows" if trace.kind == "output" else "rejects"
        written = () if commit is None else commit.outputs if part == "rows" else commit.rejects
        is_named = canonical(trace.uri) in {canonical(file.final) for file in written}
        if account is None or commit is None or not is_named:
            by = f"the commit of manifest {manifest_id}" if manifest_id else "its name, which names no manifest"
            return replace(trace, searched=f"{by}; expected a commit that names it")
        gone = self._expired_parts(commit)
        trace = replace(
            self._with_account(trace, account),
            files=[file for file in commit.files if (file.records if part == "rows" else file.rejected_lines)],
            expired=[*gone.values()],
            next_moves=moves_of_manifest(account, _redrivable(gone)),
        )
        return self._with_table(self._with_lost(trace, account), account)

    def _trace_input(self, uri: str, days: int) -> TraceResult:
        info, denied = None, ""
        try:
            info = self.state.store.stat(uri)
        except AccessError as exc:
            denied = str(exc)
        trace = TraceResult(uri, exists=info is not None or bool(denied), message=denied)
        manifest_id = self.inputs.claimed_for(uri, info)
        if manifest_id is not None:
            trace = replace(trace, state=TraceState.CLAIMED)
        else:
            naming = self.inputs.naming(uri, info, days)
            if isinstance(naming, str):
                was = self.inputs.renamed(info, days) if info is not None else None
                if info is None or was is None:
                    trace = replace(trace, searched=naming)
                    return trace if info is None else self._with_way_in(trace, info)
                found = self._followed(replace(trace, uri=was.uri, manifest_id=was.manifest_id), None, days)
                note = f"renamed or rotated: it was {was.uri}, and its rows keep that name"
                return replace(found, uri=uri, message="; ".join(filter(None, (note, found.message))), quarantined=[])
            manifest_id = naming.manifest_id
        trace = replace(trace, manifest_id=manifest_id)
        part_uri = self.state.layout.pending_part(manifest_id)
        if self.state.store.stat(part_uri) is not None:
            return replace(trace, state=TraceState.PENDING, manifest_uri=part_uri)
        return self._followed(trace, info, days)

    def _trace_landed(self, uri: str, days: int) -> TraceResult:
        found = landed_record(self.state, uri)
        if found is None:
            return TraceResult(uri, exists=True, searched="the chains of landed records")
        if not found.uri:
            return TraceResult(uri, exists=True, searched=f"the chains of landed records: {found.words}")
        if is_log(found.uri):
            trace = TraceResult(found.uri, state=TraceState.CLAIMED, manifest_id=found.manifest_id)
            trace = self._followed(trace, None, days)
        else:
            trace = self._trace_input(found.uri, days)
        return replace(trace, message="; ".join(filter(None, (found.words, trace.message))))

    def _followed(self, trace: TraceResult, info: ObjectInfo | None, days: int) -> TraceResult:
        account = self._latest(trace.manifest_id, trace.uri)
        if account.state is AccountState.UNKNOWN:
            return trace
        dates = [account.accepted.date] if account.accepted is not None else []
        trace = replace(trace, quarantined=self.inputs.quarantined(trace.uri, info, dates, days))
        trace = self._with_file(trace, account, info)
        if trace.report is not None and trace.report.range is not None and trace.report.status is FileStatus.COMPACTED:
            trace = replace(
                trace, earlier=self.inputs.earlier_lines(trace.report.range, trace.report.follows, info, days)
            )
        is_committed = trace.state in {TraceState.DECIDED, TraceState.DONE}
        return self._with_table(self._with_lost(trace, account), account) if is_committed else trace

    def _with_way_in(self, trace: TraceResult, info: ObjectInfo) -> TraceResult:
        """Describe how a file without a manifest gets into one, or why it does not."""
        reason = not_data_reason(info.uri, info.size_bytes, self.inputs.search.allowed_prefixes)
        if reason is None and self.state.rules.excludes(info.uri):
            reason = "excluded"
        if reason is None:
            return replace(trace, next_moves=[move_to_plan(info.uri)])
        return replace(trace, message=f"no plan takes it: {NOT_DATA[reason]}")

    def _latest(self, manifest_id: str, uri: str) -> Account:
        """The account of a manifest, or of the last manifest that redrives the file."""
        account = account_of(self.state, manifest_id)
        seen = {manifest_id}
        while (entry := _redriven_as(account, uri)) is not None:
            following = account_of(self.state, entry.redrive.manifest.manifest_id)
            if following.state is AccountState.UNKNOWN or following.id in seen:
                break
            seen.add(following.id)
            account = following
        return account

    def _with_file(self, trace: TraceResult, account: Account, info: ObjectInfo | None) -> TraceResult:
        made_by, wanted, commit = account.made_by, canonical(trace.uri), account.commit
        inputs = made_by.inputs if made_by is not None else ()
        of_file = (entry for entry in account.redrives if _concerns(entry, wanted))
        trace = replace(
            self._with_account(trace, account),
            origin=next((each.source_uri for each in inputs if canonical(each.uri) == wanted), ""),
            redriven_as=list(map(_redrive, of_file)),
        )
        if commit is None:
            is_revoked = account.state is AccountState.REVOKED
            return replace(trace, next_moves=[move_to_plan(trace.uri)] if is_revoked else moves_of_manifest(account))
        gone = self._expired_parts(commit)
        report = next((file for file in commit.files if canonical(file.uri) == wanted), None)
        trace = replace(trace, expired=[*gone.values()], report=report)
        if report is None:
            return trace
        if report.status is not FileStatus.COMPACTED:
            rejects, rejected = ([], []) if "rejects" in gone else _own_rejects(self.state.store, commit, report)
            is_quarantined = report.status in NEEDS_OPERATOR  # a changed file's new version has to be planned
            return replace(
                trace,
                state=TraceState.QUARANTINED,
                message=f"{report.status}: {report.detail}",
                rejects=rejects,
                rejected=rejected,
                next_moves=[] if is_quarantined else [move_to_plan(report.uri)],
            )
        trace = self._with_lines(trace, account, commit, report, gone)
        others = f"{count(report.superseded, 'other announced version')} of it no longer existed"
        message, is_replaced = others if report.superseded else trace.message, False
        if (part := report.range) is not None:
            message = f"it has grown: the figures are of its lines from {part.lines_before + 1:,} on"
        if info is not None and report.etag and info.etag != report.etag:
            was, now = (described_version(trace.uri, etag) for etag in (report.etag, info.etag))
            compacted = f"manifest {account.id} has compacted {was}; now it is {now}"
            message = "; ".join(filter(None, (message, compacted)))
            is_replaced = not report.may_have_grown(info.size_bytes)
        moves = [move_to_see(trace.uri), *moves_of_manifest(account, ["rejects"])] if trace.rejected else []
        return replace(trace, message=message, is_replaced=is_replaced, next_moves=moves)

    def _with_lines(
        self, trace: TraceResult, account: Account, commit: Commit, report: FileReport, gone: Container[Part]
    ) -> TraceResult:
        """Add the current lines of a file: rejects may have been redriven since."""
        redriven = redriven_lines(self.state, account)
        again = [each for each in redriven.reports if each.origin_uri == report.origin_uri and each.uri != report.uri]
        is_own = not report.source_uri  # not redriven lines, whose totals belong to their source file
        counts = file_counts([report, *(again if is_own else ())], with_source=is_own)
        uris = {each.uri for each in again}
        made = [each for each in redriven.commits if any(file.uri in uris and file.records for file in each.files)]
        own = commit.outputs if report.records and "rows" not in gone else []
        has_rejects = report.reject_rows and "rejects" not in gone
        rejects, rejected = _own_rejects(self.state.store, commit, report, redriven.inputs) if has_rejects else ([], [])
        return replace(
            trace,
            outputs=[file.final for file in (*own, *(file for each in made for file in each.outputs))],
            rejects=rejects,
            rejected=rejected,
            lines=counts.lines,
            rows=counts.rows,
            rejected_lines=counts.rejected_lines,
            unkept_rejects=counts.unkept_rejects,
            blank_lines=counts.blank_lines,
            erased_lines=counts.erased_lines,
            rejects_by_reason=counts.rejects_by_reason,
        )


def _redrivable(gone: Container[Part]) -> Sequence[Kind]:
    """Rejected lines can only be redriven until they expire."""
    return ("manifests",) if "rejects" in gone else ("manifests", "rejects")


def _dated_by(uri: str, accepted: Accepted) -> str:
    """The rule that gave a file its manifest's date, in words."""
    files = accepted.manifest.files if accepted.manifest is not None else ()
    rules = (file.dated_by for file in files if canonical(file.uri) == canonical(uri))
    return RULES.get(next(rules, None) or "", "")


def _attempt(state: AttemptState) -> TracedAttempt:
    attempt, failure = state.attempt, state.failure
    error, passing = (failure.error, failure.passing) if failure else ("", False)
    return TracedAttempt(attempt.number, attempt.started_at, attempt.run_id, attempt.alone, error, passing)


def _redrive(entry: RedriveLogEntry) -> TracedRedrive:
    redrive = entry.redrive
    return TracedRedrive(redrive.manifest.manifest_id, redrive.kind, redrive.counts, entry.fate)


def _redriven_as(account: Account, uri: str) -> RedriveLogEntry | None:
    """The last redrive of a whole file."""
    whole = (each for each in reversed(account.redrives) if each.in_effect and each.redrive.kind != "rejects")
    return next((each for each in whole if _concerns(each, canonical(uri))), None)


def _concerns(entry: RedriveLogEntry, wanted: str) -> bool:
    """Whether a redrive contains a file, or rejected lines from it."""
    redrive = entry.redrive
    uris = [each.source_uri for each in redrive.inputs] or [each.uri for each in redrive.manifest.files]
    return wanted in map(canonical, uris)


def _own_rejects(
    store: ObjectStore, commit: Commit, report: FileReport, settled: Sequence[RedrivenInput] = ()
) -> tuple[list[str], list[TracedReject]]:
    """An input file's reject files, including unreadable ones, and its first unsettled rejected lines."""
    uris, lines = dict[str, None](), dict[tuple[int, str], None]()
    gone = RedrivenLineNumbers(settled)
    for file in commit.rejects if report.reject_rows else ():
        try:
            for row in reject_rows(store, file.final, source_uri=report.origin_uri):
                uris[file.final] = None
                if len(lines) > MOST_LINES:
                    break
                if not gone.has(row.source_uri, row.reason, row.line_number):
                    lines[row.line_number, row.reason] = None
        except StagingError:  # `verify` reports the fault
            uris[file.final] = None
    return [*uris], [TracedReject(line, reason) for line, reason in islice(lines, MOST_LINES)]


def _erased_words(commit: Commit) -> str:
    """What was erased from a manifest on request. A row need not name its file, so this cannot be attributed to one."""
    if commit.erased is None:
        return ""
    lines = sum(file.erased_rejects for file in commit.files)
    what = f"{count(commit.erased.rows, 'row')} and {count(lines, 'rejected line')}"
    return f"{what} of its manifest, on request: {', '.join(commit.erased.erasures)}"

"""Reads rejected lines, manifest by manifest, in memory that does not grow with their number."""

import sys
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import chain, groupby, islice

from compactor.core.documents.changes import Commit
from compactor.core.documents.counts import without_zeros
from compactor.core.documents.records import FileReport, RedrivenInput
from compactor.core.errors import StagingError
from compactor.core.layout import ManifestKey, base_name, canonical, ledger_order
from compactor.core.text.formatting import did_you_mean
from compactor.core.text.safe_text import quoted
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Detail, Scope, accounts, redriven_lines
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.history.unsummarised import Unsummarised, members_with_rejects, unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ndjson.diagnosis import Fault, column_of, diagnosed
from compactor.ops.redrive.reject_lines import RedrivenLineNumbers, RejectRow, reject_rows

_BEYOND_LIMIT_BYTES = 1024  # shown of an over-long line, after its limit
_MOST_COMPARED = 10_000  # names, with a misspelt one

COUNTED_MANIFESTS = 1_000
"""How many more manifests are counted, once all requested lines were read."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which rejected lines to read; None is any."""

    reason: str | None = None  # why they were rejected
    file: str | None = None  # the URI of their file, or its last path segments
    date: str | None = None  # the date of their manifest

    def takes(self, source_uri: str, reason: str) -> bool:
        return self.takes_reason(reason) and self.takes_file(source_uri)

    def takes_reason(self, reason: str) -> bool:
        return self.reason is None or self.reason == reason

    def takes_file(self, source_uri: str) -> bool:
        if self.file is None:
            return True
        uri, wanted = canonical(source_uri), canonical(self.file)
        return uri == wanted or (not wanted.startswith(("/", "s3://")) and uri.endswith(f"/{wanted}"))


@dataclass(frozen=True)
class RejectedLine:
    """A rejected line."""

    source_uri: str  # the file that has the line
    line_number: int  # from 1; blank lines count
    byte_offset: int  # start of the line in the decoded file
    reason: str
    head: bytes  # its exact bytes; for an over-long line, the first ones
    kept: str | None  # what `input.keep` would have carried into it, as a JSON object; None for nothing
    length_bytes: int  # of the whole line
    max_line_bytes: int  # the limit when the line was rejected

    @cached_property
    def fault(self) -> Fault:
        """What is wrong with it."""
        return diagnosed(self.head, self.reason, length_bytes=self.length_bytes, max_line_bytes=self.max_line_bytes)

    @property
    def column(self) -> int | None:
        """The column of the fault, in characters from 1; None if unknown."""
        return None if self.fault.offset is None else column_of(self.head, self.fault.offset)


@dataclass(frozen=True, slots=True)
class RejectsOf:
    """The rejects of a manifest that match a query."""

    commit: Commit
    counts: Counter[str]  # lines by reason
    settled: RedrivenLineNumbers  # lines that were redriven since: they are now rows, or rejects of another manifest
    unkept: int  # lines of `counts` that are only counted; only the input file has their bytes
    samples: frozenset[str]  # files quarantined for too many rejects; their first lines are kept
    passed: frozenset[str]  # those of them that are settled: their lines no longer count as rejects

    def has(self, piece: RejectRow) -> bool:
        """Whether a piece belongs to a line that is still rejected."""
        is_settled = self.settled.has(piece.source_uri, piece.reason, piece.line_number)
        return piece.source_uri not in self.passed and not is_settled


@dataclass(slots=True)
class RejectsSearch:
    """One search of the rejects, and its findings so far. Writes nothing."""

    state: State
    query: Query = Query()
    shown: int = field(default=0, init=False)
    counts: Counter[str] = field(default_factory=Counter, init=False)  # rejected lines by reason, in manifests so far
    unkept: int = field(default=0, init=False)
    sampled: set[str] = field(default_factory=set, init=False)  # quarantined files, of which some lines are shown
    is_complete: bool = field(default=True, init=False)  # whether `counts` includes all manifests
    unreadable: list[str] = field(default_factory=list, init=False)  # the faults of records and of rejects files
    expired: Counter[str] = field(default_factory=Counter, init=False)  # rows of rejects that expired, by when and why
    _visible: Visible = field(init=False)

    def __post_init__(self) -> None:
        self._visible = Visible(self.state)

    def lines(self, limit: int | None) -> Iterator[tuple[RejectsOf, RejectedLine]]:
        """Yield the first lines; then continue to count for a while, for the total."""
        manifests = self.manifests()
        for found in manifests:
            left = None if limit is None else min(limit - self.shown, sys.maxsize)
            for line in islice(self.lines_of(found), left):
                self.shown += 1
                yield found, line
            if limit is not None and self.shown >= limit:
                break
        for _ in islice(manifests, COUNTED_MANIFESTS):
            pass
        self.is_complete = next(manifests, None) is None

    def manifests(self) -> Iterator[RejectsOf]:
        """Yield and count the manifests that have rejects, by date and id."""
        query, found = self.query, unsummarised_if_readable(self.state)
        keys = None if found is None or query.date is not None else _with_rejects(self.state, found)
        settling = Settling(self.state, found=found)
        for account in accounts(self.state, Scope(date=query.date, keys=keys, details=Detail.LINEAGE)):
            if account.fault is not None:
                self.unreadable.append(str(account.fault))
            elif account.commit is not None and account.is_done:
                rejects = self._of(account, account.commit, settling)
                if rejects is not None:
                    self.counts.update(rejects.counts)
                    self.unkept += rejects.unkept
                    self.sampled |= rejects.samples
                    yield rejects

    def unknown_file(self) -> str:
        """That no file on record is the one searched for, and which may be meant; empty if one is."""
        names, query = set[str](), self.query
        for account in accounts(self.state, Scope()) if query.file else ():
            for file in account.commit.files if account.commit is not None else ():
                if query.takes_file(file.origin_uri):
                    return ""
                if len(names) < _MOST_COMPARED:
                    names.add(base_name(file.origin_uri))
        found = did_you_mean(base_name(query.file or ""), names)
        return f"no file on record is {query.file}{found}" if query.file else ""

    def _of(self, account: Account, commit: Commit, settling: Settling) -> "RejectsOf | None":
        has_rejects = any(file.rejects for file in commit.files)
        redriven = redriven_lines(self.state, account).inputs if account.lineage and has_rejects else ()
        sampled = {file.uri for file in commit.files if file.reject_rows and not file.rejects}
        files = settling.files([each for each in account.quarantined if each.uri in sampled]) if sampled else []
        return rejects_of(commit, self.query, redriven, {each.uri for each in files if each.is_settled})

    def lines_of(self, found: RejectsOf) -> Iterator[RejectedLine]:
        """Yield a manifest's rejected lines, in the order of its files. Lines that are too long are truncated."""
        most_bytes = found.commit.max_line_bytes + _BEYOND_LIMIT_BYTES
        for (source_uri, number), pieces in groupby(self.pieces(found), key=lambda each: each[:2]):
            head, length, offset, reason, kept = b"", 0, 0, "", None
            for piece in pieces:
                if not reason:
                    offset, reason, kept = piece.byte_offset, piece.reason, piece.kept
                length += len(piece.raw)
                if len(head) < most_bytes:
                    head += piece.raw
            limit = found.commit.max_line_bytes
            yield RejectedLine(source_uri, number, offset, reason, head[:most_bytes], kept, length, limit)

    def pieces(self, found: RejectsOf) -> Iterator[RejectRow]:
        """Yield a manifest's rejected lines, each in one or several pieces."""
        for file in found.commit.rejects:
            try:
                rows = reject_rows(self.state.store, file.final, self.query.takes)
                yield from (row for row in rows if found.has(row))
            except StagingError as exc:
                if self.state.store.stat(file.final) is None and (why := self._why_expired(found.commit)):
                    self.expired[why] += file.rows
                    continue
                again = f"`compactor rebuild --manifest {quoted(found.commit.manifest_id)}` regenerates it"
                self.unreadable.append(f"{exc}; {again}")

    def _why_expired(self, commit: Commit) -> str:
        expired = self._visible.deletion("rejects", commit.key, commit.generation)
        return "" if expired is None else expired.words


def _with_rejects(state: State, found: Unsummarised) -> Iterator[ManifestKey]:
    rejecting = members_with_rejects(state, found.totals, counted=True)
    by_date = (sorted(keys, key=ledger_order) for _, keys in groupby(rejecting, key=lambda key: key.date))
    sampled = (each.key for each in found.totals.quarantined)
    others = sorted({*sampled, *found.keys}, key=ledger_order)
    return (key for key, _ in groupby(merge(chain.from_iterable(by_date), others, key=ledger_order)))


def rejects_of(
    commit: Commit, query: Query, redriven: Sequence[RedrivenInput], passed: Container[str] = ()
) -> RejectsOf | None:
    """The rejects of a commit that match a query, only by its reports; None if there are none."""
    met = [file for file in commit.files if (file.rejects or file.reject_rows) and query.takes_file(file.origin_uri)]
    files = [file for file in met if file.uri not in passed]
    counts = Counter[str]()
    for file in files:
        counts.update({reason: lines for reason, lines in file.rejects.items() if query.takes_reason(reason)})
    for each in redriven:
        if query.takes(each.source_uri, each.reason):
            counts[each.reason] -= each.lines
    counts = without_zeros(counts)
    samples = frozenset(file.origin_uri for file in files if not file.rejects)
    unkept = sum(_unkept(file, query) for file in files)
    gone = frozenset(file.origin_uri for file in met if file.uri in passed)
    return (
        RejectsOf(commit, counts, RedrivenLineNumbers(redriven), unkept, samples, gone) if counts or samples else None
    )


def _unkept(file: FileReport, query: Query) -> int:
    return sum(lines for reason, lines in file.unkept_rejects.items() if query.takes_reason(reason))

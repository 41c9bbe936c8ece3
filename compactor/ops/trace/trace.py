"""The known facts about a file, a manifest or an output, and what to do about it. Values and decisions, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from compactor.core.documents.records import FileReport
from compactor.core.inputs.source_places import HIDING
from compactor.core.layout import folder
from compactor.core.results import as_document, printed
from compactor.core.text.safe_text import quoted, visible
from compactor.ledger.accounts.account import Account, AccountState, Kind, QuarantinedFile
from compactor.ledger.history.redrive_log import Fate
from compactor.ops.redrive.giving_up import LostFile
from compactor.ops.redrive.redrivable import CURABLE
from compactor.ops.trace.finding import EarlierLines
from compactor.ops.trace.tables import TracedTable

TracedKind = Literal["file", "manifest", "output", "rejects"]

_DONE = "done: every line is in the output, in the rejects, or blank"


class TraceState(StrEnum):
    """Its progress."""

    meaning: str  # in words, for a file
    meaning_of_others: str  # for a manifest, and for its files

    def __new__(cls, value: str, meaning: str, meaning_of_others: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning, member.meaning_of_others = meaning, meaning_of_others or meaning
        return member

    UNKNOWN = "unknown", "unknown: in no record that was searched"
    CLAIMED = "claimed", "claimed for a manifest that is not written yet", "not written yet"
    PENDING = "pending", "announced; waits in a pending part for more files, or for its time limit"
    WAITING = "waiting", "waiting in a manifest without an attempt", "waiting for its first attempt"
    IN_WORK = "in_work", "in a manifest that has an attempt", "has an attempt"
    DECIDED = "decided", "committed, but not all published yet"
    DONE = "done", _DONE, f"{_DONE}, except in quarantined files"
    LOST = "lost", "lost: files of its manifest's output or rejects are gone"
    QUARANTINED = "quarantined", "quarantined; the rest of its manifest is done"
    DEAD_LETTERED = "dead_lettered", "its manifest is a dead letter", "dead letter"


@dataclass(frozen=True, slots=True)
class TracedRedrive:
    """A redrive of the traced object, or of part of it."""

    manifest_id: str  # the new manifest
    kind: Kind | Literal["planned"]  # `planned`: the plan for an id that belongs to different content
    counts: dict[str, int]  # what it redrives, by reason: files, or lines for rejects
    fate: Fate  # state of the new manifest

    @property
    def is_of_all(self) -> bool:
        """Whether it redrives a whole dead letter or whole files, not lines."""
        return self.kind in {"manifests", "files"}


@dataclass(frozen=True, slots=True)
class TracedReject:
    """A rejected line."""

    line_number: int  # the number of the line in its file, from 1
    reason: str


@dataclass(frozen=True, slots=True)
class TracedAttempt:
    """One attempt at a manifest."""

    number: int
    started_at: datetime
    run_id: str
    alone: bool  # whether no other manifest was in flight
    error: str = ""  # how it failed; empty if it did not fail, or if its driver could not report it
    passing: bool = False  # whether the failure does not count against the manifest


@as_document(shows=("meaning", "needs_operator"))
@printed(
    *("kind", "uri", "meaning", "message", "manifest_id", "date", "lines", "rows", "rejected_lines", "outputs"),
    *("rejects", "next_moves"),
)
@dataclass(frozen=True, slots=True, repr=False)
class TraceResult:
    """The known facts about a file, a manifest or an output. Texts are empty if not applicable."""

    uri: str  # the requested URI or manifest id
    kind: TracedKind = "file"  # its kind
    state: TraceState = TraceState.UNKNOWN  # its progress
    exists: bool = False  # whether the object exists now; for a manifest, in any of its places
    manifest_id: str = ""  # the manifest that names it, or wrote it
    date: str = ""  # the date of that manifest; empty if unknown
    dated_by: str = ""  # the rule that dated an input file, in words; empty if the manifest's writer did
    manifest_uri: str = ""  # the current place of that manifest's object
    attempts: Sequence[TracedAttempt] = field(default_factory=list)  # attempts at the manifest, in order
    earlier_attempts: int = 0  # earlier attempts, of which only the sum is recorded
    next_attempt_at: datetime | None = None  # the earliest time of the next attempt after a failure
    report: FileReport | None = None  # the report of an input file, once there is one
    # The reports of a manifest's input files, or of those with rows in an output file
    files: Sequence[FileReport] = field(default_factory=list)
    # The manifest's Parquet files with the rows of an input file
    outputs: Sequence[str] = field(default_factory=list)
    # The manifest's reject files; for an input file, those with its rejects
    rejects: Sequence[str] = field(default_factory=list)
    rejected: Sequence[TracedReject] = field(default_factory=list)  # its first rejected lines
    # For the last lines of a grown file, the manifests with the lines before them, as far as found
    earlier: Sequence[EarlierLines] = field(default_factory=list)
    lines: int | None = None  # current lines of a compacted input file; else null, like those below
    rows: int | None = None  # lines that are rows
    rejected_lines: int | None = None  # rejected lines
    unkept_rejects: int | None = None  # rejected lines that are only counted
    blank_lines: int | None = None  # blank lines
    erased_lines: int | None = None  # lines whose row or reject was erased on request, which no other count includes
    rejects_by_reason: Mapping[str, int] = field(default_factory=dict)  # the rejected lines by reason
    redriven_from: str = ""  # the manifest that this one redrives
    origin: str = ""  # the file whose rejected lines this file holds
    redriven_as: Sequence[TracedRedrive] = field(default_factory=list)  # later manifests that redrive it
    expired: Sequence[str] = field(default_factory=list)  # expired parts of its manifest: when, and under which rule
    erased: str = ""  # what was erased from its manifest on request; its lines count as they were read
    lost: Sequence[LostFile] = field(default_factory=list)  # lost files of its manifest's output and rejects
    # The quarantined versions of an input file, the first one first, or a manifest's quarantined files
    quarantined: Sequence[QuarantinedFile] = field(default_factory=list)
    settled_by: str = ""  # what settled a dead letter that was not redriven, in words
    reason: str = ""  # why its manifest is a dead letter, in one word; empty if it is none
    message: str = ""  # why it was quarantined or dead-lettered, or other information
    table: TracedTable | None = None  # its manifest's state in the output's table; null without one
    fixes: Sequence[str] = field(default_factory=list)  # what to do before these commands
    next_moves: Sequence[str] = field(default_factory=list)  # commands to run next
    is_replaced: bool = False  # whether an input file with rows now has a different version
    searched: str = ""  # where it was searched, if it was not found by its claim

    @property
    def found(self) -> bool:
        """Whether a record names it; if not, `compactor trace` ends with exit code 1."""
        return self.state is not TraceState.UNKNOWN

    @property
    def meaning(self) -> str:
        """State, in words."""
        return self.state.meaning if self.kind == "file" else self.state.meaning_of_others

    @property
    def needs_operator(self) -> bool:
        """Whether an operator must act: exit code 3.

        This is so if it is a dead letter, or has a quarantined version or lost files, and nothing settled that; or if
        the table's catalog refuses its rows.
        """
        if self.table is not None and self.table.state == "held_back":
            return True
        if any(not each.settled_by for each in self.lost):
            return True
        if self.kind == "file" and any(not each.is_settled for each in self.quarantined):
            return True
        if self.settled_by or any(each.manifest_id == self.manifest_id for each in self.quarantined):
            return False
        quarantined = self.state in {TraceState.QUARANTINED, TraceState.DEAD_LETTERED}
        return quarantined and not any(each.is_of_all and each.fate != "revoked" for each in self.redriven_as)


def moves_of_manifest(account: Account, kinds: Sequence[Kind] = ("manifests", "rejects")) -> list[str]:
    """The commands that redrive the rest of a manifest, by kind, without its quarantined files."""
    made_by = account.made_by
    if account.state is AccountState.UNWRITTEN and made_by is not None:
        if made_by.kind == "planned":  # the next plan of its topic or stream writes it
            return []
        return [f"compactor redrive {made_by.kind} --manifest {quoted(made_by.source)}"]
    if not account.is_done:
        return []
    left = {kind: account.left(kind) for kind in kinds}
    return [
        f"compactor redrive {kind} --manifest {quoted(account.id)}"
        for kind, reasons in left.items()
        if (CURABLE & reasons.keys() if kind == "rejects" else reasons)
    ]


def move_to_see(uri: str) -> str:
    """The command that shows the rejected lines of a file, or of all files if a shell cannot pass its name."""
    return "compactor rejects" if uri.endswith("\n") else f"compactor rejects --file {quoted(uri)}"


def move_to_plan(uri: str) -> str:
    """The command that plans a file without a manifest."""
    place, _, name = uri.rpartition("/")
    hidden = " --hidden" if name.startswith(HIDING) else ""
    return f"compactor plan {quoted(place if visible(place) == place else folder(place))}{hidden}"

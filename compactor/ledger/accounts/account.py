"""The account of a manifest: what is on record about it, and what follows from that. Decisions, no I/O."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal

from compactor.core.documents.changes import Commit, DeadLetter, How
from compactor.core.documents.closed_dates import OpenLetter
from compactor.core.documents.records import (
    NEEDS_OPERATOR,
    Accepted,
    Done,
    FileReport,
    FileStatus,
    Redrive,
)
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey, redrive_number, root_id
from compactor.core.rules.attempts import Attempts
from compactor.core.rules.next_steps import Cause, cause_of
from compactor.ledger.history.redrive_log import RedriveLogEntry, taken_from

Kind = Literal["manifests", "files", "rejects"]
"""What can be redriven: dead letters, quarantined files, rejected lines."""


class AccountState(StrEnum):
    """How far a manifest has come."""

    UNKNOWN = "unknown"  # nothing is on record, and nothing waits under its name
    UNWRITTEN = "unwritten"  # a redrive is on record whose manifest was not written yet
    REVOKED = "revoked"  # its planner gave it up before it was written
    WAITING = "waiting"
    IN_WORK = "in_work"  # has an attempt
    DECIDED = "decided"  # committed, and not all published yet
    DONE = "done"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined whole."""

    manifest_id: str
    uri: str
    status: FileStatus  # why it was quarantined
    detail: str  # what was found, and what was expected
    committed_at: datetime  # when its manifest was committed
    redriven: bool | None  # whether it was redriven since; None where that could not be read
    started_at: datetime  # when the attempt began that quarantined it
    # The manifest that compacted a later version of the file, or who dismissed it and why; empty if none is known
    settled_by: str = ""
    dismissed: How | Literal[""] = ""  # how it was given up; empty if it was not

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, compacted in a later version, or given up."""
        return self.redriven is True or bool(self.settled_by)

    @property
    def cause(self) -> Cause:
        """Why it waits, if it is open: what to do follows from that."""
        return cause_of(self.uri, self.status, self.detail)

    @property
    def ended(self) -> str:
        """What settled it, in one word or two; empty if it is open."""
        return self.dismissed or ("later version" if self.settled_by else "redriven" if self.redriven else "")

    @property
    def fate(self) -> str:
        """What settled it, in words."""
        if self.dismissed:
            return self.settled_by
        if self.settled_by:
            return f"a later version was compacted by manifest {self.settled_by}"
        return "redriven since" if self.redriven else "not settled: no later version was compacted"


def quarantined_files(commit: Commit, committed_at: datetime | None = None) -> list[QuarantinedFile]:
    """The files of a commit that need an operator, before anything is read of what settled them.

    Args:
        commit: The commit.
        committed_at: When it was made, if another clock than that of its record is to be believed.
    """
    moment = committed_at or commit.decided_at
    return [
        QuarantinedFile(commit.manifest_id, each.uri, each.status, each.detail, moment, None, commit.started_at)
        for each in commit.files
        if each.status in NEEDS_OPERATOR
    ]


def redriven_uris(redrives: Sequence[Redrive]) -> set[str]:
    """The quarantined files that some redrives took."""
    return {file.uri for each in redrives if each.kind == "files" for file in each.manifest.files}


@dataclass(frozen=True, slots=True)
class DeadLetterManifest:
    """A manifest that is a dead letter."""

    manifest_id: str
    reason: str
    message: str
    redriven: bool | None = None  # whether it was redriven under another id; None where that could not be read
    # If it was not, the manifest that took over its last file, or of which it is a duplicate that adds nothing
    settled_by: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, or later manifests took over all of its files."""
        return self.redriven is True or bool(self.settled_by)


def letter_of(record: DeadLetter | OpenLetter) -> DeadLetterManifest:
    """A dead letter on record, before anything is read of what settled it."""
    return DeadLetterManifest(record.manifest_id, record.reason, record.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is on record about a manifest. What a scope does not ask for keeps its default.

    Attributes:
        key: Its date and id; the date is empty if no record binds the id.
        accepted: The record that binds the id.
        records: The names of its other records, such as `attempt-1.json`, with the times when the store got them.
        attempts: Those that are on record by themselves.
        outcome: The valid one. None if it is undecided.
        is_done: Everything that the outcome names was published.
        done: When its rows were first visible.
        first_decided_at: When its first generation was decided.
        root: The first manifest of its lineage: of what it redrives, and of what redrives it.
        lineage: All redrives of its lineage, in their order.
        quarantined: The files that it quarantined, with what settled each as far as that was read.
        settled_by: What settled it as a dead letter, if no redrive did; empty if nothing, or if that was not read.
        uri: Where its object is now; empty if it is gone.
        fault: Why its records could not be read to their end.
    """

    key: ManifestKey
    accepted: Accepted | None = None
    records: Mapping[str, datetime] = field(default_factory=dict)
    attempts: Attempts = field(default_factory=Attempts)
    outcome: Commit | DeadLetter | None = None
    is_done: bool = False
    done: Done | None = None
    first_decided_at: datetime | None = None
    root: ManifestKey | None = None
    lineage: tuple[RedriveLogEntry, ...] = ()
    quarantined: tuple[QuarantinedFile, ...] = ()
    settled_by: str = ""
    uri: str = ""
    fault: StuckError | ObjectNotFound | None = None

    @property
    def id(self) -> str:
        return self.key.id

    @property
    def state(self) -> AccountState:
        """How far it has come."""
        if self.accepted is None and not self.records:
            if self.uri:
                return AccountState.WAITING
            return AccountState.UNKNOWN if self.made_by is None else AccountState.UNWRITTEN
        if self.accepted is not None and self.accepted.kind == "revoked":
            return AccountState.REVOKED
        if self.outcome is None:
            has_attempt = any(name.startswith("attempt") for name in self.records)
            return AccountState.IN_WORK if has_attempt else AccountState.WAITING
        if isinstance(self.outcome, DeadLetter):
            return AccountState.DEAD_LETTER
        return AccountState.DONE if self.is_done else AccountState.DECIDED

    @property
    def commit(self) -> Commit | None:
        return self.outcome if isinstance(self.outcome, Commit) else None

    @property
    def letter(self) -> DeadLetter | None:
        return self.outcome if isinstance(self.outcome, DeadLetter) else None

    @property
    def made_by(self) -> Redrive | None:
        """The redrive that made the manifest, if one did."""
        return next((each.redrive for each in self.lineage if each.redrive.manifest.manifest_id == self.id), None)

    @property
    def redrives(self) -> tuple[RedriveLogEntry, ...]:
        """The redrives of the manifest itself, in effect or not."""
        return tuple(each for each in self.lineage if each.redrive.source == self.id)

    @property
    def taken(self) -> list[Redrive]:
        """The redrives of the manifest that are in effect."""
        return taken_from(self.id, self.lineage)

    @property
    def was_redriven(self) -> bool:
        """Whether it was redriven as a dead letter."""
        return any(each.kind == "manifests" for each in self.taken)

    @property
    def redrives_are_final(self) -> bool:
        """Whether each of its redrives is accepted, or revoked for good."""
        return all(each.fate in {"accepted", "revoked"} for each in self.redrives)

    @property
    def is_interrupted(self) -> bool:
        """Whether the manifest of a redrive of its lineage was never written: the next redrive writes it."""
        return any(each.fate == "unwritten" for each in self.lineage)

    @property
    def open_files(self) -> list[QuarantinedFile]:
        """The quarantined files that nothing settled, as far as that was read."""
        return [each for each in self.quarantined if not each.is_settled]

    def open_reports(self, reason: str | None = None) -> list[FileReport]:
        """The reports on these files, or on those of a status."""
        uris = {each.uri for each in self.open_files if reason in {None, each.status}}
        return [each for each in (self.commit.files if self.commit else ()) if each.uri in uris]

    def left(self, kind: Kind, reason: str | None = None) -> Counter[str]:
        """How many manifests, files or lines can be redriven, by reason: those that nothing settled."""
        found, taken = Counter[str](), [each for each in self.taken if each.kind == kind]
        if isinstance(self.outcome, DeadLetter):
            is_open = kind == "manifests" and not taken and not self.settled_by
            found[self.outcome.reason] = int(is_open)
        elif kind == "files":
            found.update(str(each.status) for each in self.open_files)
        elif kind == "rejects" and self.outcome is not None:
            for report in self.outcome.files:
                found.update(report.rejects)
                found.subtract(report.unkept_rejects)  # their lines are in the input file alone
            for each in taken:
                found.subtract(each.counts)
        return Counter({each: number for each, number in found.items() if number > 0 and reason in {None, each}})

    def checked(self) -> "Account":
        """The account itself, if its records could be read.

        Raises:
            RecordUnreadable: One could not.
            ObjectNotFound: One was gone after it was listed.
        """
        if self.fault is not None:
            raise self.fault
        return self

    @property
    def may_be_redriven(self) -> bool:
        """Whether it may have redrives, or be one, by the names of its records alone."""
        return root_id(self.id) != self.id or any(redrive_number(name) is not None for name in self.records)

    def with_lineage(self, lineage: Sequence[RedriveLogEntry]) -> "Account":
        """The account with the redrives of its lineage, as they are now."""
        found = replace(self, lineage=tuple(lineage))
        taken = redriven_uris(found.taken)
        return replace(found, quarantined=tuple(replace(each, redriven=each.uri in taken) for each in self.quarantined))

"""The account of a manifest: its records, and the conclusions from them. Decisions, no I/O."""

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
from compactor.ledger.history.redrive_log import RedriveLogEntry, effective_redrives_of

Kind = Literal["manifests", "files", "rejects"]
"""What can be redriven: dead letters, quarantined files, rejected lines."""


class AccountState(StrEnum):
    """A manifest's progress."""

    UNKNOWN = "unknown"  # no records, and no object under its name
    UNWRITTEN = "unwritten"  # a redrive is recorded, but its manifest is not written yet
    REVOKED = "revoked"  # its planner gave it up before writing it
    WAITING = "waiting"
    IN_WORK = "in_work"  # has an attempt
    DECIDED = "decided"  # committed, but not all published yet
    DONE = "done"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined as a whole."""

    manifest_id: str
    uri: str
    status: FileStatus | Literal["replaced"]  # why it was quarantined
    detail: str  # what was found, and what was expected
    committed_at: datetime  # when its manifest was committed
    redriven: bool | None  # whether it was redriven since; None if unreadable
    started_at: datetime  # when the attempt that quarantined it started
    # The manifest that compacted a later version of the file, or who dismissed it and why; empty if unknown
    settled_by: str = ""
    dismissed: How | Literal[""] = ""  # how it was given up; empty if it was not
    etag: str = ""  # for a replaced file, the version without rows; else empty

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, compacted in a later version, or given up."""
        return self.redriven is True or bool(self.settled_by)

    @property
    def cause(self) -> Cause:
        """Why it waits, if it is open; determines what to do."""
        return cause_of(self.uri, self.status, self.detail)

    @property
    def ended(self) -> str:
        """What settled it, in one or two words; empty if it is open."""
        return self.dismissed or ("later version" if self.settled_by else "redriven" if self.redriven else "")

    @property
    def fate(self) -> str:
        """What settled it, as a sentence."""
        if self.dismissed:
            return self.settled_by
        if self.settled_by:
            return f"a later version was compacted by manifest {self.settled_by}"
        return "redriven since" if self.redriven else "not settled: no later version was compacted"


def quarantined_files(commit: Commit, committed_at: datetime | None = None) -> list[QuarantinedFile]:
    """The files of a commit that need an operator, not considering later records that may have settled them.

    Args:
        commit: The commit.
        committed_at: When it was made, to override the time in its record.
    """
    moment = committed_at or commit.decided_at
    return [
        QuarantinedFile(commit.manifest_id, each.uri, each.status, each.detail, moment, None, commit.started_at)
        for each in commit.files
        if each.status in NEEDS_OPERATOR
    ]


def redriven_uris(redrives: Sequence[Redrive]) -> set[str]:
    """The quarantined files taken by redrives."""
    return {file.uri for each in redrives if each.kind == "files" for file in each.manifest.files}


@dataclass(frozen=True, slots=True)
class DeadLetterManifest:
    """A manifest that is a dead letter."""

    manifest_id: str
    reason: str
    message: str
    redriven: bool | None = None  # whether it was redriven under a new id; None if unreadable
    # If not, the manifest that took over its last file, or of which it is a redundant duplicate; or who gave it up
    settled_by: str = ""
    dismissed: How | Literal[""] = ""  # how it was given up; empty if it was not

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, given up, or other manifests have all its files."""
        return self.redriven is True or bool(self.settled_by)

    @property
    def ended(self) -> str:
        """What settled it, in one or two words; empty if it is open."""
        if self.dismissed == "dismissed":
            return "dismissed"
        return "taken over" if self.settled_by else "redriven" if self.redriven else ""

    @property
    def fate(self) -> str:
        """What settled it other than a redrive, as a sentence; empty if nothing did."""
        if self.dismissed or not self.settled_by:
            return self.settled_by
        return f"its files were taken over by later manifests, the last one by {self.settled_by}"


def letter_of(record: DeadLetter | OpenLetter) -> DeadLetterManifest:
    """A recorded dead letter, not considering later records that may have settled it."""
    return DeadLetterManifest(record.manifest_id, record.reason, record.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The records about a manifest. Fields outside the scope keep their defaults.

    Attributes:
        key: Its date and id; the date is empty if no record binds the id.
        accepted: The record that binds the id.
        records: The names of its other records, such as `attempt-1.json`, with the store's times.
        attempts: Attempts with their own records.
        outcome: The valid one. None if undecided.
        is_done: Whether all files of the outcome were published.
        done: When its rows became visible.
        first_decided_at: When its first generation was decided.
        root: The first manifest of its lineage.
        lineage: All redrives of its lineage, in order.
        quarantined: The files that it quarantined, with what settled each, if read.
        settled_by: What settled the dead letter other than a redrive, in words; empty if nothing did, or if not read.
        uri: Where its object is now; empty if it does not exist.
        fault: Why its records could not be read completely.
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
        """Its progress."""
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
        """The redrive that created the manifest, if any."""
        return next((each.redrive for each in self.lineage if each.redrive.manifest.manifest_id == self.id), None)

    @property
    def redrives(self) -> tuple[RedriveLogEntry, ...]:
        """The manifest's own redrives, whether or not they are in effect."""
        return tuple(each for each in self.lineage if each.redrive.source == self.id)

    @property
    def effective_redrives(self) -> list[Redrive]:
        """The manifest's redrives that are in effect."""
        return effective_redrives_of(self.id, self.lineage)

    @property
    def was_redriven(self) -> bool:
        """Whether it was redriven as a dead letter."""
        return any(each.kind == "manifests" for each in self.effective_redrives)

    @property
    def redrives_are_final(self) -> bool:
        """Whether each of its redrives is accepted, or permanently revoked."""
        return all(each.fate in {"accepted", "revoked"} for each in self.redrives)

    @property
    def is_interrupted(self) -> bool:
        """Whether the manifest of a redrive in its lineage was never written: the next redrive writes it."""
        return any(each.fate == "unwritten" for each in self.lineage)

    @property
    def open_files(self) -> list[QuarantinedFile]:
        """The quarantined files that are not settled, as far as read."""
        return [each for each in self.quarantined if not each.is_settled]

    def open_reports(self, reason: str | None = None) -> list[FileReport]:
        """The reports on the open files, optionally with one status only."""
        uris = {each.uri for each in self.open_files if reason in {None, each.status}}
        return [each for each in (self.commit.files if self.commit else ()) if each.uri in uris]

    def left(self, kind: Kind, reason: str | None = None) -> Counter[str]:
        """How many manifests, files or lines can still be redriven, by reason."""
        found, redrives = Counter[str](), [each for each in self.effective_redrives if each.kind == kind]
        if isinstance(self.outcome, DeadLetter):
            is_open = kind == "manifests" and not redrives and not self.settled_by
            found[self.outcome.reason] = int(is_open)
        elif kind == "files":
            found.update(str(each.status) for each in self.open_files)
        elif kind == "rejects" and self.outcome is not None:
            for report in self.outcome.files:
                found.update(report.rejects)
                found.subtract(report.unkept_rejects)  # only the input file has their lines
            for each in redrives:
                found.subtract(each.counts)
        return Counter({each: number for each, number in found.items() if number > 0 and reason in {None, each}})

    def checked(self) -> "Account":
        """The account itself, if its records could be read.

        Raises:
            RecordUnreadable: A record could not be read.
            ObjectNotFound: A record disappeared after it was listed.
        """
        if self.fault is not None:
            raise self.fault
        return self

    @property
    def may_be_redriven(self) -> bool:
        """Whether it may have redrives or be one, judging only by the names of its records."""
        return root_id(self.id) != self.id or any(redrive_number(name) is not None for name in self.records)

    def with_lineage(self, lineage: Sequence[RedriveLogEntry]) -> "Account":
        """The account with its lineage's redrives as they are now."""
        found = replace(self, lineage=tuple(lineage))
        uris = redriven_uris(found.effective_redrives)
        return replace(found, quarantined=tuple(replace(each, redriven=each.uri in uris) for each in self.quarantined))

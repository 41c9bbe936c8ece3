"""The documents of the ledger, which record a manifest from its acceptance until it is done.

Each is written once and never changed.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from compactor.core.documents.document import Document
from compactor.core.documents.manifest import FileRange, Manifest, ManifestFile
from compactor.core.layout import ManifestKey


class FileStatus(StrEnum):
    """The result for one input file."""

    COMPACTED = "compacted"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    CHANGED = "changed"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    TOO_MANY_REJECTS = "too_many_rejects"
    TOO_MUCH_SCRATCH = "too_much_scratch"
    NOT_NDJSON = "not_ndjson"
    TOO_COSTLY = "too_costly"


NEEDS_OPERATOR = frozenset(set(FileStatus) - {FileStatus.COMPACTED, FileStatus.CHANGED})
"""Statuses of quarantined files. A changed file is not quarantined: its new version is announced by its own event."""


FileFormat = Literal["ndjson", "json"]
"""How a file is read: line by line, or as JSON arrays and documents, whose elements count as lines."""


class FileReport(Document):
    """The report on one input file: `records + rejected_lines + blank_lines + erased_rejects == lines`.

    A file with too many rejects has no lines here: none of its rows is kept, and `reject_rows` are samples.

    Attributes:
        uri: The URI, as the manifest spells it.
        status: The result for the file.
        detail: What was found and what was expected; empty if compacted.
        size_bytes: The stored size.
        etag: The version that was read.
        digest: Of its stored bytes, if it was compacted from a local disk; else empty.
        codec: Its compression, one of `CODECS`; `none` if it was not compressed.
        format: How it was read. Of a JSON file, elements count as lines everywhere.
        decoded_bytes: Its length after decoding.
        lines: All lines, including a last one without a line feed.
        blank_lines: Lines that hold only spaces, tabs and carriage returns.
        records: Lines that became one row each.
        rejected_lines: Lines that were rejected.
        rejects: Rejected lines by reason.
        unkept_rejects: Those of them, by reason, that are only counted because there were too many. Their bytes are in
            the input file alone.
        reject_rows: Rows in the rejects; more than the kept lines where an over-long line is kept in pieces.
        source_uri: Of a file of redriven lines, the file that they are from; else empty. The counts are without the
            blank lines that stand for other lines of that file.
        rejected_as: The reason for which these lines were rejected before; else empty.
        path_columns: Values that the folders of its path give to its rows.
        erased_rejects: Lines that were rejected, and erased on request since. No other count has them.
        range: Of a file that grew, the lines that were to be read: `size_bytes`, `decoded_bytes` and all counts are of
            these alone, and `digest` is of all bytes up to their end.
    """

    uri: str
    status: FileStatus
    detail: str = ""
    size_bytes: int = 0
    etag: str = ""
    digest: str = ""
    codec: str = "none"
    format: FileFormat = "ndjson"
    decoded_bytes: int = 0
    lines: int = 0
    blank_lines: int = 0
    records: int = 0
    rejected_lines: int = 0
    rejects: dict[str, int] = Field(default_factory=dict)
    unkept_rejects: dict[str, int] = Field(default_factory=dict)
    reject_rows: int = 0
    source_uri: str = ""
    rejected_as: str = ""
    path_columns: dict[str, str] = Field(default_factory=dict)
    erased_rejects: int = 0
    range: FileRange | None = None

    @property
    def origin_uri(self) -> str:
        """The file that its lines are from: itself, unless it holds redriven lines."""
        return self.source_uri or self.uri

    @property
    def end_byte(self) -> int:
        """The number of bytes of the file that it and earlier manifests have lines of, as stored."""
        return self.range.to_byte if self.range else self.size_bytes

    def may_have_grown(self, size_bytes: int) -> bool:
        """Whether a local file of another length may begin with the bytes that it had; what reads them knows."""
        return bool(self.digest) and size_bytes > self.end_byte

    def as_input(self) -> ManifestFile:
        """The file as a manifest names it, to read the same lines again.

        A local file may have grown since: all bytes that it had are then told by their digest.
        """
        was = FileRange(
            continues=self.uri,
            from_byte=0,
            to_byte=self.size_bytes,
            lines_before=0,
            digest_before="",
            digest=self.digest,
        )
        return ManifestFile(
            uri=self.uri,
            size_bytes=self.range.size_bytes if self.range else self.size_bytes,
            etag=self.etag,
            source_uri=self.source_uri or None,
            rejected_as=self.rejected_as or None,
            path_columns=self.path_columns or None,
            range=self.range or (was if self.digest else None),
        )


class Accepted(Document):
    """Binds a manifest id to one manifest for good.

    Attributes:
        kind: `manifest` for a valid manifest; `refused` for an invalid one; `part` for files that are
            sealed into a manifest of another id; `revoked` for an id whose claims were taken over, so that nothing
            takes effect under it.
        digest: Digest of the manifest's bytes: the same id with other bytes is another manifest.
        source_uri: The object that the manifest was read from.
        manifest: The manifest, if `kind` is `manifest`.
    """

    manifest_id: str
    kind: Literal["manifest", "refused", "part", "revoked"]
    date: str
    digest: str = ""
    source_uri: str = ""
    accepted_at: datetime
    manifest: Manifest | None = None

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


class Attempt(Document):
    """Recorded before work starts, so that a manifest that kills every driver runs out of attempts.

    Attributes:
        alone: No other manifest was in flight: if the driver dies now, no other one is to blame.
        after_progress: Another manifest was committed since the previous attempt at this one began.
        after_self_test: The job converted a sample of its own right before it, and after the previous attempt.
        generation: The generation of the commit that it is to make; from 2 for a rebuild.
    """

    manifest_id: str
    number: int
    run_id: str
    alone: bool
    after_progress: bool = False
    after_self_test: bool = False
    generation: int = 1
    started_at: datetime


class AttemptFailure(Document):
    """An attempt that ended without an outcome.

    Attributes:
        passing: The trouble was passing, such as a store that throttles, and is not held against the manifest.
        undecided: The environment may be to blame: it counts only if others, or a sample of the job if nothing else was
            in flight, get through before the next attempt.
        died: The driver or the engine died; a later run recorded it.
        refused: The store refused all input of the manifest.
        needs_isolation: The next attempt has to run with nothing else in flight.
    """

    manifest_id: str
    number: int
    passing: bool
    undecided: bool = False
    died: bool = False
    refused: bool = False
    needs_isolation: bool = False
    error: str
    failed_at: datetime


class AttemptsFolded(Document):
    """The sum of the first attempts at a manifest, whose own records were deleted.

    Attributes:
        upto: The number of the last attempt that is in the sum.
        failures: How many failed, except deaths that are not held against the manifest.
        held: How many are held against the manifest.
        deaths: How many ended with their driver.
        last_error: How the last one ended.
    """

    manifest_id: str
    upto: int
    failures: int
    held: int
    deaths: int
    last_error: str
    first_started_at: datetime
    folded_at: datetime


class Done(Document):
    """Everything that the outcome names is in its final place.

    Each generation has its own record. That of the first one tells when the rows were first visible; a rebuild writes
    it if the first one was never published.
    """

    manifest_id: str
    run_id: str
    done_at: datetime


class RedrivenInput(Document):
    """One file of rejected lines that were redriven.

    Attributes:
        uri: The new file.
        source_uri: The file that the lines are from.
        lines: Number of lines.
        reason: Why they were rejected.
        numbers: Their line numbers, as first and last of each range. A range has no other line that was rejected for
            this reason.
    """

    uri: str
    source_uri: str
    lines: int
    reason: str = ""
    numbers: list[tuple[int, int]] = Field(default_factory=list)


class Redrive(Document):
    """A redrive. Written before the new manifest, which it contains.

    Attributes:
        kind: `manifests` for a dead letter, `files` for quarantined files, `rejects` for rejected lines, `planned` for
            what a plan had for the id of the source, which something else has.
        source: The id of the redriven manifest: the root that this record is kept beside, or a successor.
        number: From 1; part of the new manifest's id.
        counts: What was redriven, by reason: lines for `rejects`, else files. `planned` is a reason of its own.
        inputs: For `rejects`, where the lines of each new file came from.
        manifest: The new manifest.
    """

    kind: Literal["manifests", "files", "rejects", "planned"]
    source: str
    number: int
    counts: dict[str, int]
    inputs: list[RedrivenInput] = Field(default_factory=list)
    manifest: Manifest
    run_id: str
    redriven_at: datetime


class OpenMarker(Document):
    """Marks a begun manifest until it is done, so that recovery need not read the whole ledger."""

    manifest_id: str
    date: str


class ClaimsEntry(Document):
    """One entry of the journal of claims, written by a planner that had read all entries before it.

    Attributes:
        keys: Keys that were free or could be taken over.
        holder: The manifest that holds them from this entry on.
    """

    keys: list[str]
    holder: str
    lease_until: AwareDatetime


class RunHeartbeat(Document):
    """Shows that a run is alive. The run overwrites it at intervals and deletes it when it ends.

    Attributes:
        host: The machine and its boot.
        process_id: The driver's process on that machine.
        release: The release of the compactor that it runs; empty for one that does not tell.
        is_stopping: It was asked to end: if it dies now, no manifest is to blame.
        shard: The shard that it works for; empty if it works on all manifests.
    """

    run_id: str
    host: str
    process_id: int
    release: str = ""
    started_at: datetime
    heartbeat_at: datetime
    is_stopping: bool = False
    shard: str = ""


class LastRun(Document):
    """What came of a task that jobs repeat. Overwritten each time.

    Attributes:
        finished_at: When it last finished; before that, when a job first looked whether it was due.
        failing_since: When the first call since then failed; None if none did.
        failed_at: When the last of these failed.
        error: Why it did.
    """

    finished_at: AwareDatetime
    failing_since: AwareDatetime | None = None
    failed_at: AwareDatetime | None = None
    error: str = ""


class RecentCommit(Document):
    """Summary of a commit in a ring of fixed size. Sizing learns from it, and `status` shows it.

    Attributes:
        seconds: The time from the start of the winning attempt to the decision.
        arrived_at: When the manifest was created, if known.
        rejects: Rejected lines by reason.
        quarantined: Quarantined files that need an operator, by status.
        columns: Columns of keys in the schema version.
        max_columns: The most that there may be.
        rejects_of: If it redrives rejected lines, the manifest that rejected them; else empty.
        redriven: These lines, by the reason for which they were rejected before.
        misfits: Values that do not fit the type of their column, by the name of the column.
        target_file_bytes: How large its files should be.
        right_sized_bytes: Bytes in files within 25 % of this target.
        small_bytes: Bytes of the manifest, or of partitions of it, that do not fill a file of this target.
    """

    manifest_id: str
    date: str
    decoded_bytes: int
    input_bytes: int
    output_bytes: int
    output_files: int
    input_files: int
    records: int
    rejected_lines: int
    seconds: float
    decided_at: datetime
    arrived_at: datetime | None = None
    rejects: dict[str, int] = Field(default_factory=dict)
    quarantined: dict[str, int] = Field(default_factory=dict)
    columns: int = 0
    max_columns: int = 0
    rejects_of: str = ""
    redriven: dict[str, int] = Field(default_factory=dict)
    misfits: dict[str, int] = Field(default_factory=dict)
    target_file_bytes: int
    right_sized_bytes: int
    small_bytes: int

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)

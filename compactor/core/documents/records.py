"""The ledger's documents, which record a manifest from its acceptance until it is done."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field, PositiveFloat

from compactor.core.documents.document import Document, ManifestRecord
from compactor.core.documents.manifest import FileRange, Manifest, ManifestFile
from compactor.core.inputs.record_place import RecordPlace


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
    DEFERRED = "deferred"
    OVER_BUDGET = "over_budget"


LIFE_SECONDS = 40.0
"""A run with work that wrote no heartbeat for this long counts as dead."""

NEEDS_OPERATOR = frozenset(set(FileStatus) - {FileStatus.COMPACTED, FileStatus.CHANGED})
"""Statuses of quarantined files. A changed file is not quarantined, because an event announces its new version.

The job redrives deferred files itself, before their manifest is done.
"""


FileFormat = Literal["ndjson", "json"]
"""How a file is read: line by line, or as JSON arrays and documents whose elements count as lines."""


class FileReport(Document):
    """The report on one input file: `records + rejected_lines + blank_lines + erased_rejects == lines`.

    A file with too many rejects reports no lines: its rows are dropped, and `reject_rows` are samples.

    Attributes:
        uri: Spelled as in the manifest.
        detail: What was found, and what was expected; empty if compacted.
        size_bytes: The stored size.
        etag: The version that was read.
        superseded: How many other announced versions no longer existed.
        digest: Digest of the stored bytes if it was compacted from a local disk; else empty.
        codec: One of `CODECS`; `none` if it was not compressed.
        format: How it was read. In a JSON file, elements count as lines everywhere.
        record_path: Where the records of a JSON file are in each document; empty if the document is the record.
        kept_keys: The keys beside them that were carried into each record.
        decoded_bytes: Its decoded length.
        hole_bytes: The NUL bytes before its first line, which were skipped.
        lines: All lines, including a last one without a line feed.
        blank_lines: Lines of only spaces, tabs and carriage returns.
        records: Lines that became one row each.
        rejects: Rejected lines by reason.
        unkept_rejects: How many of `rejects` are only counted, because there were too many.
        reject_rows: Rows in the rejects; exceeds the kept lines if an over-long line is kept in pieces.
        source_uri: For redriven lines, the file that they come from; else empty. Blank lines in place of that file's
            other lines are not counted.
        rejected_as: Why these lines were rejected earlier; else empty.
        path_columns: Values from the folders of its path.
        erased_rejects: Rejected lines that were erased on request. No other count includes them.
        range: The lines of a grown file: `size_bytes`, `decoded_bytes` and all counts cover only these; `digest` covers
            all bytes up to their end.
        follows: As in the manifest. Logs that follow each other may begin with the same bytes.
    """

    uri: str
    status: FileStatus
    detail: str = ""
    size_bytes: int = 0
    etag: str = ""
    superseded: int = 0
    digest: str = ""
    codec: str = "none"
    format: FileFormat = "ndjson"
    record_path: str = ""
    kept_keys: tuple[str, ...] = ()
    decoded_bytes: int = 0
    hole_bytes: int = 0
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
    follows: str = ""

    @property
    def place(self) -> RecordPlace | None:
        """Where its records are in its JSON; None for lines."""
        return RecordPlace(self.record_path, self.kept_keys) if self.format == "json" else None

    @property
    def origin_uri(self) -> str:
        """The file that its lines come from: itself, unless it holds redriven lines."""
        return self.source_uri or self.uri

    @property
    def end_byte(self) -> int:
        """How many stored bytes of the file this and earlier manifests cover."""
        return self.range.to_byte if self.range else self.size_bytes

    def may_have_grown(self, size_bytes: int) -> bool:
        """Whether a local file of this length may begin with the bytes that were read."""
        return bool(self.digest) and size_bytes > self.end_byte

    def as_input(self) -> ManifestFile:
        """The file as a manifest entry, to read the same lines again.

        A local file may have grown: the range and its digest identify the bytes that were read.
        """
        was = FileRange(
            continues=self.uri,
            from_byte=0,
            to_byte=self.size_bytes,
            lines_before=0,
            digest_before="",
            digest=self.digest,
            digest_within=self.digest,
        )
        return ManifestFile(
            uri=self.uri,
            size_bytes=self.range.size_bytes if self.range else self.size_bytes,
            etag=self.etag,
            source_uri=self.source_uri or None,
            rejected_as=self.rejected_as or None,
            path_columns=self.path_columns or None,
            follows=self.follows or None,
            range=self.range or (was if self.digest else None),
        )


class Accepted(ManifestRecord):
    """Binds a manifest id permanently to one manifest.

    Attributes:
        kind: `manifest` for a valid manifest; `refused` for an invalid one; `part` for files that are sealed into a
            manifest with a different id; `revoked` for an id whose claims were taken over, so that it never takes
            effect.
        digest: Digest of the manifest's bytes: the same id with different bytes is a different manifest.
        source_uri: The manifest's own object.
        manifest: None unless `kind` is `manifest`.
    """

    kind: Literal["manifest", "refused", "part", "revoked"]
    digest: str = ""
    source_uri: str = ""
    accepted_at: datetime
    manifest: Manifest | None = None


class Attempt(Document):
    """An attempt, recorded before its work starts, so that a manifest that kills every driver runs out of attempts.

    Attributes:
        alone: No other manifest was in flight: if the driver dies, only this one can be the cause.
        after_progress: Another manifest was committed since the previous attempt started.
        after_self_test: The job converted a sample between the previous attempt and this one.
        generation: The commit's generation; from 2 for a rebuild.
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
        passing: The failure was transient, such as throttling, and does not count against the manifest.
        undecided: The environment may be the cause: it counts only if other manifests, or the job's sample if nothing
            else was in flight, succeed before the next attempt.
        died: The driver or the engine died; a later run recorded it.
        refused: The store refused all input of the manifest.
        needs_isolation: The next attempt must run with nothing else in flight.
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
        upto: The number of the last of these attempts.
        failures: How many failed, without deaths that do not count against the manifest.
        held: How many count against the manifest.
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
    """All files of the outcome are in their final places.

    Each generation has its own record. The first one has the time when the rows became visible; a rebuild writes it if
    the first generation was never published.
    """

    manifest_id: str
    run_id: str
    done_at: datetime


class ReplacedFile(Document):
    """An input file with a version that no manifest has, although one has rows of an earlier version.

    Attributes:
        etag: The version without rows.
        manifest_id: The manifest with rows of the earlier version.
        detail: Both versions, and why the rows were not rebuilt, if that was requested.
        found_at: When a plan found it.
    """

    uri: str
    etag: str
    manifest_id: str
    detail: str
    found_at: AwareDatetime


class RedrivenInput(Document):
    """One file of rejected lines that were redriven.

    Attributes:
        source_uri: The file that the lines come from.
        reason: Why they were rejected.
        numbers: Ranges of line numbers, first and last. All lines of a range that were rejected for this reason are
            redriven.
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
            a planned manifest whose id belongs to a different manifest.
        source: The redriven manifest: the root, which holds this record, or a successor.
        number: From 1; part of the new manifest's id.
        counts: What was redriven, by reason: lines for `rejects`, else files. `planned` is a separate reason.
        inputs: For `rejects`, where the lines of each new file came from.
    """

    kind: Literal["manifests", "files", "rejects", "planned"]
    source: str
    number: int
    counts: dict[str, int]
    inputs: list[RedrivenInput] = Field(default_factory=list)
    manifest: Manifest
    run_id: str
    redriven_at: datetime


class OpenMarker(ManifestRecord):
    """Marks a manifest as open until it is done, so that recovery need not read the whole ledger."""


class ClaimsEntry(Document):
    """An entry in the claims journal. Its planner had read all earlier entries.

    Attributes:
        keys: Keys that were free or could be taken over.
        holder: The manifest that holds them from then on.
    """

    keys: list[str]
    holder: str
    lease_until: AwareDatetime


class RunHeartbeat(Document):
    """Shows that a run is alive. The run overwrites it periodically and deletes it when it ends.

    Attributes:
        host: The machine and its boot id.
        process_id: The driver's process id.
        release: The compactor's release; may be empty.
        is_stopping: The run was asked to end: if it dies now, no manifest is to blame.
        shard: Empty if the run takes all manifests.
        life_seconds: How long it counts as alive after this. An idle run writes less often.
    """

    run_id: str
    host: str
    process_id: int
    release: str = ""
    started_at: datetime
    heartbeat_at: datetime
    is_stopping: bool = False
    shard: str = ""
    life_seconds: PositiveFloat = LIFE_SECONDS


class LastRun(Document):
    """The latest result of a recurring task. Overwritten each time.

    Attributes:
        finished_at: When it last finished; before that, when a job first checked whether it was due.
        failing_since: When the first call since then failed; None if none failed.
        failed_at: When the last call failed.
        error: Why it failed.
    """

    finished_at: AwareDatetime
    failing_since: AwareDatetime | None = None
    failed_at: AwareDatetime | None = None
    error: str = ""


class RecentCommit(ManifestRecord):
    """Summary of a commit in a ring buffer. Sizing learns from it, and `status` shows it.

    Attributes:
        seconds: From the start of the winning attempt to the decision.
        arrived_at: When the manifest was created, if known.
        rejects: Rejected lines by reason.
        quarantined: Quarantined files that need an operator, by status.
        columns: Number of key columns in the schema version.
        max_columns: Limit of `columns`.
        rejects_of: The manifest whose rejected lines this one redrives; else empty.
        redriven: Redriven lines by the reason of their earlier rejection.
        misfits: Values that do not fit the type of their column, by column name.
        target_file_bytes: The target size of its files.
        right_sized_bytes: Bytes in files within 25 % of this target.
        small_bytes: Bytes of a manifest, or of its partitions, too small to fill one file of this target.
    """

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

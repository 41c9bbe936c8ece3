"""The documents of the ledger: what is on record about a manifest, from its acceptance to done.

All of them are written once and never changed.
"""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from compactor.core.errors import RecordUnreadable
from compactor.core.manifest import Manifest
from compactor.core.manifest_key import ManifestKey

T = TypeVar("T")


def read_record(parse: Callable[[bytes], T], data: bytes, uri: str, *, expected: str) -> T:
    """Read a stored document.

    Args:
        parse: Makes it of the bytes.
        data: The bytes.
        uri: Where they are.
        expected: What they should be, in words.

    Raises:
        RecordUnreadable: They are something else; with the first fault.
    """
    try:
        return parse(data)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the document"
        raise RecordUnreadable(f"{uri}: {field}: {first['msg']}; expected {expected}") from exc


class Document(BaseModel):
    """A record that stays as it was written. Unknown fields are kept out of the way of older readers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FileStatus(StrEnum):
    """What became of one input file."""

    COMPACTED = "compacted"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    CHANGED = "changed"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    TOO_MANY_KEYS = "too_many_keys"


NEEDS_OPERATOR = frozenset(set(FileStatus) - {FileStatus.COMPACTED, FileStatus.CHANGED})
"""Files that were set aside whole. A changed file is none of them: its new version brings its own event."""


class FileReport(Document):
    """The audit of one input file: `records + rejected_lines + blank_lines == lines`.

    Attributes:
        uri: As the manifest names it.
        status: What became of it.
        detail: For any status but `compacted`: what was found and what was expected.
        size_bytes: As stored.
        etag: The version that was read.
        codec: What it was encoded with: one of `compactor.ndjson.codecs.CODECS`.
        decoded_bytes: Its length after decoding.
        lines: All lines; a last one without line feed counts.
        blank_lines: Lines of nothing but spaces, tabs and carriage returns.
        records: Lines that became one row each.
        rejected_lines: Lines that were set aside.
        rejects: How many of them, by reason.
        reject_rows: Rows in the rejects; more than `rejected_lines` where an over-long line is kept in pieces.
    """

    uri: str
    status: FileStatus
    detail: str = ""
    size_bytes: int = 0
    etag: str = ""
    codec: str = "none"
    decoded_bytes: int = 0
    lines: int = 0
    blank_lines: int = 0
    records: int = 0
    rejected_lines: int = 0
    rejects: dict[str, int] = Field(default_factory=dict)
    reject_rows: int = 0


class Accepted(Document):
    """Ties a manifest id to one manifest for good.

    Attributes:
        kind: `manifest` for one that can be worked on; `refused` for one that is wrong; `part` for files that are
            sealed into a manifest of another id; `revoked` for an id whose claims were taken over, so that nothing may
            ever take effect under it.
        digest: Of the manifest's bytes: the same id with other bytes is another manifest.
        source_uri: The object it was read from.
        manifest: The manifest, for the first kind.
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
    """Recorded before work starts, so that a manifest that kills its driver runs out of attempts.

    Attributes:
        alone: No other manifest was in flight: if the driver dies now, this manifest is to blame.
    """

    manifest_id: str
    number: int
    run_id: str
    alone: bool
    started_at: datetime


class AttemptFailure(Document):
    """An attempt that ended without an outcome while its driver lived on.

    Attributes:
        passing: The trouble was passing (a store that throttles, say), so the attempt is not held against the manifest.
        error: What went wrong.
    """

    manifest_id: str
    number: int
    passing: bool
    error: str
    failed_at: datetime


class StagedFile(Document):
    """One verified Parquet file, from where it is staged to where it will be.

    Attributes:
        rows: As its footer says.
        schema_version: Of rows: the version whose columns it has; None where that is the one of the commit.
    """

    staged: str
    final: str
    rows: int
    size_bytes: int
    schema_version: int | None = None

    def version_in(self, commit: "Commit") -> int:
        """The schema version whose columns it has, as a file of rows of this commit."""
        return commit.schema_version if self.schema_version is None else self.schema_version


class Commit(Document):
    """The outcome of a manifest that was compacted: from here on it only rolls forward.

    Attributes:
        attempt: The attempt that won.
        outputs: Parquet files of rows.
        rejects: Parquet files of rejects.
        files: The audit, one report a file of the manifest, in its order.
        engine: Which engine did it.
        schema_version: The version that has a column for every key, as far as there may be columns.
        rescued_values: Values that do not fit the type of their column, and are in the rescued data instead.
        redone_bins: Parts of the input whose rows had to be written again, for keys that nobody had seen before.
        max_line_bytes: The longest line that was accepted.
        max_decompressed_bytes: The largest file that was accepted, decompressed.
        started_at: When the winning attempt began.
    """

    kind: Literal["commit"] = "commit"
    manifest_id: str
    date: str
    attempt: int
    run_id: str
    engine: str
    schema_version: int
    outputs: list[StagedFile]
    rejects: list[StagedFile]
    files: list[FileReport]
    rescued_values: int = 0
    redone_bins: int = 0
    max_line_bytes: int
    max_decompressed_bytes: int
    started_at: datetime
    decided_at: datetime

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


class DeadLetter(Document):
    """The outcome of a manifest that cannot be compacted.

    Attributes:
        reason: One word, for counting and redriving.
        message: What is wrong, where, and what was expected.
        source_uri: Where the original was read from.
    """

    kind: Literal["dead_letter"] = "dead_letter"
    manifest_id: str
    date: str
    reason: str
    message: str
    source_uri: str
    run_id: str
    decided_at: datetime

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


Outcome = Annotated[Commit | DeadLetter, Field(discriminator="kind")]
OUTCOME: TypeAdapter[Commit | DeadLetter] = TypeAdapter(Outcome)


class Done(Document):
    """Everything that the outcome names is in its final place."""

    manifest_id: str
    run_id: str
    done_at: datetime


class RedrivenInput(Document):
    """One file of rejected lines that were put back.

    Attributes:
        uri: The new file.
        source_uri: The file whose lines they were.
        lines: How many.
    """

    uri: str
    source_uri: str
    lines: int


class Redrive(Document):
    """What was put back as a new manifest. Written before that manifest, which it holds.

    Attributes:
        kind: `manifests` for a whole dead letter; `files` for files that were set aside; `rejects` for rejected lines.
        source: The manifest that it was taken from: the root of this record's place, or a successor of it.
        number: Of this record; part of the new manifest's id.
        counts: What was taken, by reason: files for the first two kinds, lines for the last one.
        inputs: For rejects: where the lines of each new file came from.
        manifest: The new manifest.
    """

    kind: Literal["manifests", "files", "rejects"]
    source: str
    number: int
    counts: dict[str, int]
    inputs: list[RedrivenInput] = Field(default_factory=list)
    manifest: Manifest
    run_id: str
    redriven_at: datetime


class OpenMarker(Document):
    """Says that a manifest was begun; removed when it is done. An index, so that recovery need not read the ledger."""

    manifest_id: str
    date: str


class ClaimsEntry(Document):
    """One entry of the journal of claims, written by somebody who knew all entries before it.

    Attributes:
        keys: What was free, or held by somebody it could be taken over from.
        holder: Who holds them from this entry on.
    """

    keys: list[str]
    holder: str
    lease_until: AwareDatetime


class RunHeartbeat(Document):
    """A run's sign of life. The one record that is written over and over; it goes with the run.

    Attributes:
        host: The machine and its boot, where the process can be looked for.
        process_id: The driver's process there.
    """

    run_id: str
    host: str
    process_id: int
    started_at: datetime
    heartbeat_at: datetime


class LastCleaning(Document):
    """When a run cleaned up last. Written over and over."""

    finished_at: AwareDatetime


class RecentCommit(Document):
    """Summary of a commit, in a ring of fixed size: what sizing learns from and `status` shows.

    Attributes:
        seconds: From the start of the successful attempt to the decision.
        arrived_at: When the manifest was created; None if that is unknown.
        rejects: Rejected lines by reason.
        quarantined: Quarantined files that need an operator, by status.
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

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)

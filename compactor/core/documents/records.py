"""The documents of the ledger, which record a manifest from its acceptance until it is done.

Each is written once and never changed.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AwareDatetime, Field, TypeAdapter

from compactor.core.documents.document import Document
from compactor.core.documents.manifest import FileRange, Manifest, ManifestFile
from compactor.core.documents.table_records import MergedFile
from compactor.core.layout import Layout, ManifestKey


class GrokRules(Document):
    """Everything that decides what a line becomes. A commit keeps it, since the pattern of the settings may change.

    Attributes:
        regex: The expression, in which every name of the pattern has been replaced by what it stands for.
        keys: The key of each named group, in the order of the groups. Groups of which a line has one at most may share
            a key.
        max_steps: The most steps that matching a line may take.
    """

    regex: str
    keys: tuple[str, ...]
    max_steps: int


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


class StagedFile(Document):
    """One verified Parquet file, with its staged and its final place. These are one if it was written in place.

    Attributes:
        rows: Number of rows in its footer.
        schema_version: For a file of rows, the version whose columns it has; None if it has the version of the commit.
        partition: For a file of rows, the value of each of the commit's `partition_by` that all its rows have.
        holds_others: Its rows have other values than `partition`, which are None: those of too many partitions.
    """

    staged: str
    final: str
    rows: int
    size_bytes: int
    schema_version: int | None = None
    partition: list[str | None] = Field(default_factory=list)
    holds_others: bool = False

    @property
    def is_in_place(self) -> bool:
        """Whether it was written under its final name, so that nothing is left to copy."""
        return self.staged == self.final

    def version_in(self, commit: "Commit") -> int:
        """The schema version whose columns a file of rows of this commit has."""
        return commit.schema_version if self.schema_version is None else self.schema_version


class Why(StrEnum):
    """Why something changes."""

    COMPACTED = "compacted"  # a manifest was compacted, or its rows were made again
    DEAD_LETTER = "dead-letter"  # a manifest cannot be compacted
    RETIRED = "retired"  # an operator retired the date
    ARCHIVE = "archive"  # archived manifests by age
    REDRIVEN = "redriven"  # redriven lines by age
    REJECTS = "rejects"  # rejects by age
    ERASED = "erased"  # lines were erased on request
    GIVEN_UP = "given-up"  # quarantined input needs no person any more although no manifest has its lines
    MERGED = "merged"  # files of the table were merged
    RELEASED = "released"  # files that were merged may be gone: their rows are in the merged file alone


class Change(Document):
    """A change of what the output holds, or of what becomes of input: created before it takes effect, never changed.

    `Ledger.decide` puts one on record. Of several at one place, the first is valid.
    """

    why: Why
    run_id: str
    decided_at: datetime


class Outcome(Change):
    """What was decided of a manifest. Each of its generations has one, which supersedes those before."""

    manifest_id: str
    date: str

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)


class Erased(Document):
    """What was erased on request of the rows that the reports on the files count.

    Attributes:
        erasures: The ids of the erasures, the first one first.
        rows: The rows that are in no output any more. Which file each was from need not be known.
    """

    erasures: list[str]
    rows: int


class Commit(Outcome):
    """The outcome of a manifest that was compacted. After this record, the manifest only rolls forward.

    A rebuild makes the next generation, with the same rows except those of replaced input files.

    Attributes:
        generation: 1, and one more with each rebuild. Of several commits, the one of the highest generation is valid.
        reason: Of a rebuild, what was wrong with the files of the generation before.
        removes: Final names of earlier generations that are not used again. They are deleted before any file is
            published.
        replaced: Input files of which it has another version than the generation before.
        files: One report per file of the manifest, in its order.
        schema_version: The version that has a column for every key that may have one.
        rescued_values: Values that do not fit the type of their column and went to the rescued data.
        misfits: Those values by the name of their column.
        redone_bins: Parts of the input whose rows were written again because of new keys.
        refused_keys: Keys that got no column, at least; their values went to the rescued data.
        partition_by: How the rows are divided within the date; see `compactor.core.partitions`. Empty: not at all.
        unparsed_times: Rows whose value is no time where one was expected; they are in a partition without it.
        columns: Columns of keys in the schema version.
        max_columns: The most that there may be.
        max_line_bytes: The longest line that was accepted.
        max_decompressed_bytes: The largest file that was accepted, decompressed.
        rejects_of: If it redrives rejected lines, the manifest that rejected them; else empty.
        started_at: When the winning attempt began; after a rebuild, that of the first generation, whose rows it has.
        erased: What was erased on request, by this generation and those before it; None if nothing was.
        grok: What read the lines of its files as records; None if they are JSON.
    """

    why: Literal[Why.COMPACTED] = Why.COMPACTED
    generation: int = 1
    reason: str = ""
    removes: list[str] = Field(default_factory=list)
    replaced: list[str] = Field(default_factory=list)
    attempt: int
    engine: str
    schema_version: int
    outputs: list[StagedFile]
    rejects: list[StagedFile]
    files: list[FileReport]
    rescued_values: int = 0
    misfits: dict[str, int] = Field(default_factory=dict)
    redone_bins: int = 0
    refused_keys: int = 0
    partition_by: list[str] = Field(default_factory=list)
    unparsed_times: int = 0
    columns: int = 0
    max_columns: int = 0
    max_line_bytes: int
    max_decompressed_bytes: int
    rejects_of: str = ""
    started_at: datetime
    erased: Erased | None = None
    grok: GrokRules | None = None

    @property
    def is_rebuilt(self) -> bool:
        """Whether it supersedes an earlier generation."""
        return self.generation > 1

    @property
    def erased_rows(self) -> int:
        """Rows that the reports on the files count, and that were erased since."""
        return 0 if self.erased is None else self.erased.rows


class DeadLetter(Outcome):
    """The outcome of a manifest that cannot be compacted. It is never rebuilt.

    Attributes:
        why: Always `dead-letter`.
        reason: Why, as one word.
        message: What is wrong, where, and what was expected.
        source_uri: The object that the manifest was read from.
    """

    why: Literal[Why.DEAD_LETTER] = Why.DEAD_LETTER
    generation: ClassVar[int] = 1
    reason: str
    message: str
    source_uri: str


class LaterChange(Change):
    """A change of what is done: what it takes of manifests it names with the generation of their outcomes.

    What comes later to the same date, as a late manifest or a rebuild, is not under it. Two processes that decide the
    same give it the same id.

    Attributes:
        about: The date or the manifest that it is about; empty if it is about several.
    """

    about: str = ""
    id: str

    @classmethod
    def whys(cls) -> frozenset[Why]:
        """The reasons that a change of this kind may have."""
        return frozenset(get_args(cls.model_fields["why"].annotation))


Part = Literal["rows", "rejects", "archive", "redriven"]
"""A part of what is stored of a manifest: output, rejects, its archived object, or the redriven lines that it read."""

Rule = Literal[Why.RETIRED, Why.ARCHIVE, Why.REDRIVEN, Why.REJECTS]
"""A kind of rule of retention."""

TAKES: Mapping[Rule, frozenset[Part]] = {
    Why.RETIRED: frozenset({"rows", "rejects", "archive", "redriven"}),
    Why.ARCHIVE: frozenset({"archive"}),
    Why.REDRIVEN: frozenset({"redriven"}),
    Why.REJECTS: frozenset({"rejects"}),
}
"""The parts that go under each kind of rule."""


class Taking(LaterChange):
    """Parts of manifests of a date go under a rule of retention.

    Attributes:
        reason: The rule, such as `retention.archive_days = 30`.
        by: Who decided it.
        manifests: The generation of the outcome of each manifest, by id.
    """

    why: Rule
    reason: str
    by: str
    manifests: dict[str, int]

    @property
    def words(self) -> str:
        """What every command says in place of what expired."""
        return f"expired on {self.decided_at:%Y-%m-%d} under {self.reason}"

    def takes(self, part: Part, key: ManifestKey, generation: int) -> bool:
        """Return whether a part of a generation of a manifest is under it."""
        is_member = key.date == self.about and generation <= self.manifests.get(key.id, 0)
        return is_member and part in TAKES[self.why]


How = Literal["accepted", "dismissed", "removed", "excluded"]
"""How input is given up.

A person accepted that a range of a topic or stream is gone; a person dismissed a file; a file is gone that never had
rows, which counts only while it is gone; or the settings exclude a file, which counts only while they do.
"""


class GivenUp(LaterChange):
    """Quarantined input of a manifest needs no person any more although no manifest has its lines.

    Attributes:
        input: A file, or a gap of a topic or stream.
        reason: What a person said, or what was found.
        by: Who decided it.
    """

    why: Literal[Why.GIVEN_UP] = Why.GIVEN_UP
    input: str
    how: How
    reason: str
    by: str

    @property
    def words(self) -> str:
        """What every command says of the input."""
        did = {"accepted": "loss accepted", "removed": "found removed"}.get(self.how, self.how)
        return f"{did} by {self.by} at {self.decided_at:%Y-%m-%d %H:%M:%S} UTC: {self.reason}"


Inputs = Literal["keep", "delete"]
"""What becomes of input files that hold a value to erase: they are only named, or deleted."""


class ErasedManifest(Document):
    """What is erased of one manifest.

    Attributes:
        generation: Of the commit without it.
        rows: Rows.
        rejected_lines: Rejected lines whose bytes were kept, redriven ones included.
    """

    manifest_id: str
    date: str
    generation: int
    rows: int
    rejected_lines: int


class Erasure(LaterChange):
    """Lines were erased on request. It holds none of the values, and names no input file: a name may have one.

    Attributes:
        key: The key whose values were given.
        by: Who asked.
        values: How many values. Neither they nor a digest of them is kept: digests of few possible values tell them.
        inputs: What becomes of the input files.
        begun_at: When its call began.
        manifests: Of an intention, what is to go; of the change, what went.
        deleted_inputs: How many input files were deleted.
        left: How many manifests and files still hold a value, or may hold one.
        died: Whether its call seemed to have died, and a later one told what was erased by then. Then it is not known
            what became of input files, nor what was left.
    """

    why: Literal[Why.ERASED] = Why.ERASED
    key: str
    by: str
    values: int
    inputs: Inputs
    begun_at: AwareDatetime
    manifests: list[ErasedManifest]
    deleted_inputs: int = 0
    left: int = 0
    died: bool = False


class Merge(LaterChange):
    """Files of the table were merged.

    It takes effect by a batch of the table that names it, and only by the first one behind `base` that replaces files:
    after any other one, the files may no longer have the rows that they ought to have.

    Attributes:
        files: The merged files that it adds.
        base: The last batch that the table had taken when the files to merge were chosen.
    """

    why: Literal[Why.MERGED] = Why.MERGED
    files: list[MergedFile]
    base: int


class Release(LaterChange):
    """The parts of a merged file of a date may be gone, as their rows are in it alone. They may also be there.

    It is on record before a batch that releases them, and before the merge of a file that has rows of such parts; so a
    part that is gone has one.
    """

    why: Literal[Why.RELEASED] = Why.RELEASED
    file: MergedFile


OUTCOME: TypeAdapter[Commit | DeadLetter] = TypeAdapter(Annotated[Commit | DeadLetter, Field(discriminator="why")])


def place_of(layout: Layout, change: Commit | DeadLetter | LaterChange) -> str:
    """The place of a change, which only one can have: it is created, and never replaced."""
    if isinstance(change, Commit | DeadLetter):
        return layout.outcome(change.key, change.generation)
    return layout.change(change.why, change.about, change.id)


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

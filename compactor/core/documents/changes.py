"""Changes to the output: the outcome of each manifest, and later changes by rules and operators."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AwareDatetime, Field, TypeAdapter

from compactor.core.documents.document import Document, ManifestRecord
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.documents.table_records import MergedFile
from compactor.core.layout import Layout, ManifestKey


class GrokRules(Document):
    """Rules for matching a line. A commit keeps them, because the pattern in the settings may change.

    Attributes:
        regex: The expression, with every named pattern replaced by its definition.
        keys: The key of each named group, in order. Groups may share a key if a line matches at most one of them.
        max_steps: The most steps that matching a line may take.
    """

    regex: str
    keys: tuple[str, ...]
    max_steps: int


class StagedFile(Document):
    """A verified Parquet file, with its staged and its final place; a file written in place has only one.

    Attributes:
        schema_version: For a file of rows, the version with its columns; None for that of the commit.
        partition: For a file of rows, the value that all its rows share for each of the commit's `partition_by`.
        holds_others: The file holds rows of the partitions beyond the limit, and `partition` is all None.
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
        """Whether the file needs no copy."""
        return self.staged == self.final

    def version_in(self, commit: "Commit") -> int:
        """The schema version with the columns of this file of rows."""
        return commit.schema_version if self.schema_version is None else self.schema_version


class Why(StrEnum):
    """Why the output changes, or how input is handled."""

    COMPACTED = "compacted"  # a manifest was compacted or rebuilt
    DEAD_LETTER = "dead-letter"  # a manifest cannot be compacted
    DATE = "date"  # an operator had a whole date expire
    ARCHIVE = "archive"  # archived manifests expired
    REDRIVEN = "redriven"  # redriven lines expired
    REJECTS = "rejects"  # rejects expired
    ERASED = "erased"  # lines were erased on request
    GIVEN_UP = "given-up"  # quarantined input, a dead letter or lost output no longer needs an operator
    MERGED = "merged"  # files of the table were merged
    RELEASED = "released"  # merged files may be deleted: the new file contains their rows


class Change(Document):
    """A change to the output or to how input is handled. Recorded before it takes effect; immutable.

    `Ledger.decide` records it. If two processes decide on the same place, the first one wins.
    """

    why: Why
    run_id: str
    decided_at: datetime


class Outcome(Change, ManifestRecord):
    """The decision on a manifest. Each generation has one, which supersedes earlier ones."""


class Erased(Document):
    """Rows that file reports count although they were erased on request.

    Attributes:
        erasures: The ids of the erasures, oldest first.
        rows: How many rows. The file of each row may be unknown.
    """

    erasures: list[str]
    rows: int


class Commit(Outcome):
    """The outcome of a compacted manifest. Once it is recorded, the manifest only rolls forward.

    A rebuild makes the next generation, with the same rows except those of replaced input files.

    Attributes:
        generation: Starts at 1; each rebuild adds one. The highest generation is valid.
        reason: For a rebuild, what was wrong with the files of the previous generation.
        removes: Final names of earlier generations that are not reused. They are deleted before files are published.
        replaced: Input files whose version differs from the previous generation.
        files: One report per file of the manifest, in its order.
        schema_version: The version that has a column for every key that gets one.
        rescued_values: Values that do not fit the type of their column and went to the rescued data.
        misfits: These values by column name.
        redone_bins: Parts of the input whose rows were rewritten because of new keys.
        refused_keys: A lower bound on the keys without a column; their values went to the rescued data.
        partition_by: Partitions within the date, as in `compactor.core.partitions`; may be empty.
        unparsed_times: Rows in the partition without a time, because their value cannot be parsed as one.
        columns: Number of key columns in the schema version.
        max_columns: Limit of `columns`.
        max_line_bytes: Limit of a line's length.
        max_decompressed_bytes: Limit of a file's decompressed size.
        rejects_of: The manifest whose rejected lines this one redrives; else empty.
        started_at: When the winning attempt of the first generation started.
        erased: What this generation and earlier ones erased on request; None if nothing.
        grok: How the lines were matched; None if they are JSON.
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
        return self.generation > 1

    @property
    def deferred(self) -> set[str]:
        """The URIs of files that are left to a later manifest."""
        return {file.uri for file in self.files if file.status is FileStatus.DEFERRED}

    @property
    def erased_rows(self) -> int:
        """Rows that file reports count although they were erased later."""
        return 0 if self.erased is None else self.erased.rows


class DeadLetter(Outcome):
    """The outcome of a manifest that cannot be compacted. It is never rebuilt.

    Attributes:
        why: `dead-letter`.
        reason: One of `compactor.core.documents.manifest.REASONS`.
        message: What is wrong, where, and what was expected.
        source_uri: The manifest's own object.
    """

    why: Literal[Why.DEAD_LETTER] = Why.DEAD_LETTER
    generation: ClassVar[int] = 1
    reason: str
    message: str
    source_uri: str


class LaterChange(Change):
    """A change after the outcome. It lists the affected manifests with their outcome generations.

    Later arrivals for the same date, such as a late manifest or a rebuild, are unaffected. Two processes that make the
    same decision give it the same id.

    Attributes:
        about: The date or the manifest; empty if there are several.
    """

    about: str = ""
    id: str

    @classmethod
    def whys(cls) -> frozenset[Why]:
        """The reasons for this kind of change."""
        return frozenset(get_args(cls.model_fields["why"].annotation))


Part = Literal["rows", "rejects", "archive", "redriven"]
"""What is stored for a manifest: output, rejects, the archived manifest, or the redriven lines that it read."""

Rule = Literal[Why.DATE, Why.ARCHIVE, Why.REDRIVEN, Why.REJECTS]
"""A retention rule."""

TAKES: Mapping[Rule, frozenset[Part]] = {
    Why.DATE: frozenset({"rows", "rejects", "archive", "redriven"}),
    Why.ARCHIVE: frozenset({"archive"}),
    Why.REDRIVEN: frozenset({"redriven"}),
    Why.REJECTS: frozenset({"rejects"}),
}
"""What each rule deletes."""


class Taking(LaterChange):
    """Parts of a date's manifests expire under a retention rule.

    Attributes:
        reason: The rule, such as `retention.archive_days = 30`.
        by: Who decided it.
        manifests: The outcome generation of each manifest, by id.
    """

    why: Rule
    reason: str
    by: str
    manifests: dict[str, int]

    @property
    def words(self) -> str:
        """How commands describe the expired parts."""
        return f"expired on {self.decided_at:%Y-%m-%d} under {self.reason}"

    def takes(self, part: Part, key: ManifestKey, generation: int) -> bool:
        """Whether a part of a manifest's generation expires."""
        is_member = key.date == self.about and generation <= self.manifests.get(key.id, 0)
        return is_member and part in TAKES[self.why]


How = Literal["dismissed", "removed", "excluded", "compacted"]
"""How something is given up.

An operator `dismissed` it. A file without rows was found `removed`, or the settings have `excluded` it; both hold only
while this is so. A redrive found all files of a dead letter `compacted` by other manifests.
"""


class GivenUp(LaterChange):
    """Quarantined input, a dead letter or lost output no longer needs an operator, although its lines may be lost.

    Attributes:
        input: A file, or a gap in a topic or stream; empty for a dead letter.
        etag: If it is a replaced file, the version without rows; else empty.
        generation: If it is a lost file of output or rejects, the generation of its commit; 0 for all else.
        reason: The operator's words, or the finding.
        by: Who decided it.
    """

    why: Literal[Why.GIVEN_UP] = Why.GIVEN_UP
    input: str
    etag: str = ""
    generation: int = 0
    how: How
    reason: str
    by: str

    @property
    def words(self) -> str:
        """How commands describe the input."""
        did = f"found {self.how}" if self.how in {"removed", "compacted"} else self.how
        return f"{did} by {self.by} at {self.decided_at:%Y-%m-%d %H:%M:%S} UTC: {self.reason}"


Inputs = Literal["keep", "delete"]
"""Whether input files that hold an erased value are kept and listed, or deleted."""


class ErasedManifest(ManifestRecord):
    """What is erased from one manifest.

    Attributes:
        generation: Of the commit without the erased rows.
        rejected_lines: Rejected lines whose bytes were kept, including redriven ones.
    """

    generation: int
    rows: int
    rejected_lines: int


class SearchedPlace(Document):
    """A place that an erasure searched.

    Attributes:
        what: What it may contain.
        place: A folder, or the table.
        objects: The objects there that may have contained a value.
    """

    what: Literal["rows", "rejects", "names", "letters", "input", "staging", "table", "temporary"]
    place: str
    objects: int


class Erasure(LaterChange):
    """Lines were erased on request. Stores none of the values and no input file name, which may contain a value.

    Attributes:
        key: The key whose values were erased.
        by: Who asked.
        values: How many values. Not even digests are kept: with few possible values, a digest reveals them.
        inputs: How input files are handled.
        begun_at: When the command started.
        manifests: In an intention, what to erase; in the change, what was erased.
        places: Every place that was searched; empty in an intention.
        deleted_inputs: How many input files were deleted.
        left: How many manifests and files still contain a value, or may contain one.
        died: The command apparently died, and a later one recorded what it had erased. Input files and `left` are
            unknown.
    """

    why: Literal[Why.ERASED] = Why.ERASED
    key: str
    by: str
    values: int
    inputs: Inputs
    begun_at: AwareDatetime
    manifests: list[ErasedManifest]
    places: tuple[SearchedPlace, ...] = ()
    deleted_inputs: int = 0
    left: int = 0
    died: bool = False


class Merge(LaterChange):
    """Files of the table were merged.

    Takes effect with the table batch that names it, unless a batch after `base` replaced files: the merged files might
    then have outdated rows.

    Attributes:
        files: The merged files that it adds.
        base: The table's last batch when the files to merge were chosen.
    """

    why: Literal[Why.MERGED] = Why.MERGED
    files: list[MergedFile]
    base: int


class Release(LaterChange):
    """The parts of a merged file may be deleted, because it contains their rows. They may still exist.

    Recorded before the batch that releases them, and before merging a file with rows of such parts. So each missing
    part has a record.
    """

    why: Literal[Why.RELEASED] = Why.RELEASED
    file: MergedFile


OUTCOME: TypeAdapter[Commit | DeadLetter] = TypeAdapter(Annotated[Commit | DeadLetter, Field(discriminator="why")])


def place_of(layout: Layout, change: Commit | DeadLetter | LaterChange) -> str:
    """The place of a change, which only ever holds this one."""
    if isinstance(change, Commit | DeadLetter):
        return layout.outcome(change.key, change.generation)
    return layout.change(change.why, change.about, change.id)

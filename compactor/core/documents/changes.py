"""The changes of what the output holds: what was decided of each manifest, and what rules and people changed later."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AwareDatetime, Field, TypeAdapter

from compactor.core.documents.document import Document
from compactor.core.documents.records import FileReport
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

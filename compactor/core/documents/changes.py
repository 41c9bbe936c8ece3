"""What changes stored rows and input after their manifests are done: one kind of record. No I/O.

A change is created before it takes effect, and never changed. What it takes of manifests it names with the generation
of their outcomes: what comes later to the same date, as a late manifest or a rebuild, is not under it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from compactor.core.documents.document import Document
from compactor.core.documents.table_records import MergedFile
from compactor.core.layout import ManifestKey, base_name

Part = Literal["rows", "rejects", "archive", "redriven"]
"""A part of what is stored of a manifest: output, rejects, its archived object, or the redriven lines that it read."""


class Why(StrEnum):
    """Why something changes."""

    RETIRED = "retired"  # an operator retired the date
    ARCHIVE = "archive"  # archived manifests by age
    REDRIVEN = "redriven"  # redriven lines by age
    REJECTS = "rejects"  # rejects by age
    ERASED = "erased"  # lines were erased on request
    GIVEN_UP = "given-up"  # quarantined input needs no person any more although no manifest has its lines
    MERGED = "merged"  # files of the table were merged
    RELEASED = "released"  # files that were merged may be gone: their rows are in the merged file alone


TAKES: Mapping[Why, frozenset[Part]] = {
    Why.RETIRED: frozenset({"rows", "rejects", "archive", "redriven"}),
    Why.ARCHIVE: frozenset({"archive"}),
    Why.REDRIVEN: frozenset({"redriven"}),
    Why.REJECTS: frozenset({"rejects"}),
}
"""The parts that go under each kind of rule of retention."""

How = Literal["accepted", "dismissed", "removed", "excluded"]
"""How input is given up.

A person accepted that a range of a topic or stream is gone; a person dismissed a file; a file is gone that never had
rows, which counts only while it is gone; or the settings exclude a file, which counts only while they do.
"""

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


class Erasure(Document):
    """What is particular to an erasure. It holds none of the values, and names no input file: a name may have one.

    Attributes:
        key: The key whose values were given.
        values: How many values. Neither they nor a digest of them is kept: digests of few possible values tell them.
        inputs: What becomes of the input files.
        begun_at: When its call began.
        manifests: Of an intention, what is to go; of the change, what went.
        deleted_inputs: How many input files were deleted.
        left: How many manifests and files still hold a value, or may hold one.
        died: Whether its call seemed to have died, and a later one told what was erased by then. Then it is not known
            what became of input files, nor what was left.
    """

    key: str
    values: int
    inputs: Inputs
    begun_at: AwareDatetime
    manifests: list[ErasedManifest] = Field(default_factory=list)
    deleted_inputs: int = 0
    left: int = 0
    died: bool = False


class Change(Document):
    """One change.

    Attributes:
        about: What it is about: a date, or the manifest whose input is given up; empty if it is about several dates.
        id: The rest of its place. Two processes that decide the same give it the same.
        reason: The rule, such as `retention.archive_days = 30`, or what a person said, or what was found.
        by: Who decided it.
        manifests: The generation of the outcome of each manifest that it takes something of, by id.
        input: The input that is given up: a file, or a gap of a topic or stream.
        erasure: Of an erasure.
        files: The merged files that a merge adds, or the one that alone has rows. A merge takes effect by a batch of
            the table that names it, and only by the first one behind `base` that replaces files: after any other one,
            the files may no longer have the rows that they ought to have.
        base: The last batch that the table had taken when the files to merge were chosen.
    """

    why: Why
    about: str = ""
    id: str
    reason: str = ""
    by: str = ""
    run_id: str
    decided_at: AwareDatetime
    manifests: dict[str, int] = Field(default_factory=dict)
    input: str = ""
    how: How | None = None
    erasure: Erasure | None = None
    files: list[MergedFile] = Field(default_factory=list)
    base: int = 0

    @property
    def words(self) -> str:
        """What every command says in place of what expired or was given up."""
        if self.how is None:
            return f"expired on {self.decided_at:%Y-%m-%d} under {self.reason}"
        did = {"accepted": "loss accepted", "removed": "found removed"}.get(self.how, self.how)
        return f"{did} by {self.by} at {self.decided_at:%Y-%m-%d %H:%M:%S} UTC: {self.reason}"

    def takes(self, part: Part, key: ManifestKey, generation: int) -> bool:
        """Return whether a part of a generation of a manifest is under it."""
        is_member = key.date == self.about and generation <= self.manifests.get(key.id, 0)
        return is_member and part in TAKES[self.why]


def taken_by(changes: Iterable[Change], part: Part, key: ManifestKey, generation: int) -> Change | None:
    """The first change that took a part of a manifest; None if it has to be there."""
    found = [each for each in changes if each.takes(part, key, generation)]
    return min(found, key=lambda each: (each.decided_at, each.id), default=None)


def left_under(change: Change, generations: Mapping[str, int], opened: Iterable[str]) -> tuple[list[str], list[str]]:
    """The manifests whose parts a change may delete now, and those for which that has to wait.

    A manifest that was rebuilt since keeps what it has. One that is open may be rebuilt at this moment.

    Args:
        change: The change.
        generations: The generation of the newest outcome of each of its manifests; none for one that has no outcome.
        opened: The ids of open manifests.
    """
    in_work = set(opened)
    same = [each for each, generation in change.manifests.items() if generations.get(each, 0) == generation]
    # guard: the files of a manifest that is open are left to the next run
    return [each for each in same if each not in in_work], [each for each in same if each in in_work]


def release(file: MergedFile, run_id: str, now: datetime) -> Change:
    """The parts of a merged file may be gone, as their rows are in it alone. It tells nothing of parts that are there.

    It is on record before a batch that releases them, and before the merge of a file that has rows of such parts; so a
    part that is gone has one.
    """
    return Change(
        why=Why.RELEASED, about=file.date, id=released_id(file.uri), run_id=run_id, decided_at=now, files=[file]
    )


def released_id(uri: str) -> str:
    """The id of the release of the parts of a merged file."""
    return base_name(uri).partition(".")[0]

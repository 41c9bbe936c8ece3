"""Records of `compactor forget`: who asked for an erasure, and what went. They hold none of the values. No I/O."""

from typing import Literal

from pydantic import AwareDatetime, Field

from compactor.core.documents.document import Document

Inputs = Literal["keep", "delete"]
"""What becomes of input files that hold a value: they are only named, or deleted."""


class ErasedManifest(Document):
    """What was erased of one manifest.

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
    """Says that an erasure began. Written before it changes anything.

    Attributes:
        id: Names it, also in the commits that it makes.
        key: The key whose values were given.
        values: How many values. Neither they nor a digest of them is kept: digests of few possible values tell them.
        inputs: What becomes of the input files.
        by: Who asked for it.
        found: What is to go, and the generations of the commits without it. If its call dies, these tell what went.
    """

    id: str
    key: str
    values: int
    inputs: Inputs
    by: str
    run_id: str
    begun_at: AwareDatetime
    found: list[ErasedManifest] = Field(default_factory=list)


class ErasureDone(Document):
    """What an erasure did. Written at its end. It names no input file: a name may have a value.

    Attributes:
        deleted_inputs: How many input files were deleted.
        left: How many manifests and files still hold a value, or may hold one.
        died: Whether its call seemed to have died, and a later one told what was erased by then. Then it is not known
            what became of input files, nor what was left.
    """

    id: str
    manifests: list[ErasedManifest]
    deleted_inputs: int
    left: int
    finished_at: AwareDatetime
    died: bool = False

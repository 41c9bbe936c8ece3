"""What `compactor compact SRC DST --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.cli.documents.dismiss import DismissedFile
from compactor.cli.documents.verify import Verification
from compactor.job.report import RunReport
from compactor.manifests.plan import LeftOut
from compactor.ndjson.files.envelopes import Envelope
from compactor.ops.rebuild.rebuild_report import Rebuilt


class Work(Document, of=RunReport):
    """What this call did."""


class Backlog(Document):
    """Work that is left."""

    manifests: int = Field(description="Number of manifests in the watched prefix, including those in progress.")
    begun_manifests: int = Field(description="Number of manifests that were started and are not done.")
    input_bytes: int = Field(description="Stored bytes that the waiting manifests name.")


class NotTaken(Document, of=LeftOut):
    """A file or folder that was not taken, and that a person has to know of."""


class RebuiltManifest(Document, of=Rebuilt):
    """One manifest whose rows were made again."""


class EnvelopeFile(Document, of=Envelope):
    """A file whose rows look like envelopes: the records are the elements of an array in each row."""


class Compaction(Document):
    """What one call of `compact` did. With `--dry-run` nothing is written."""

    source: str = Field(description="SRC, all of them in one text.")
    sources: list[str] = Field(description="Each SRC.")
    output: str = Field(description="DST, which holds rows only.")
    settings_file: str = Field(description="Settings file with which all other commands work.")
    rejects_folder: str = Field(description="Folder of the rejects.")
    schema_file: str | None = Field(description="Schema file with the types; null if all columns are strings.")
    dry_run: bool = Field(description="Whether nothing was written.")
    deep: bool = Field(description="Whether `--deep` was given.")
    new_files: int = Field(description="Number of files that this call planned, or would plan.")
    new_bytes: int = Field(description="Their stored size.")
    planned_before: int = Field(description="Number of files that are in a manifest already.")
    touched: int = Field(description="Those of them whose time changed, and whose bytes did not.")
    renamed: int = Field(description="Those of them that had another name, which is gone.")
    grown: int = Field(description="New files of which only the lines behind those with rows are taken.")
    replaced: int = Field(description="Files of which another version has rows.")
    misdated: int = Field(
        description="New files whose names give a date outside the window; they have the day of their arrival."
    )
    skipped: dict[str, int] = Field(description="Objects that are no data, by reason.")
    left_out: list[NotTaken] = Field(description="Files and folders that were not taken, and need a person.")
    held: int = Field(description="Number of files that another planner has claimed.")
    held_until: Time | None = Field(description="End of the last of those leases; null if nothing is held.")
    resumed_manifests: int | None = Field(
        description="Manifests that waited before this call planned any; null in a dry run."
    )
    envelopes: list[EnvelopeFile] | None = Field(
        description="Files of this call whose rows look like envelopes, among those with the longest rows; null in a "
        "dry run."
    )
    settled: list[DismissedFile] | None = Field(
        description="Files that earlier calls quarantined and that need no person any more; null in a dry run."
    )
    rebuilt: list[RebuiltManifest] | None = Field(
        description="Manifests whose rows were made again with replaced files; null in a dry run."
    )
    run: Work | None = Field(description="What this call did; null in a dry run.")
    backlog: Backlog | None = Field(description="Work that is left; null in a dry run.")
    engine: str | None = Field(description="Engine that wrote the rows of this call; null if there was nothing to do.")
    engine_reason: str | None = Field(description="Why this engine was chosen; null if there was nothing to do.")
    is_interrupted: bool = Field(description="Whether a signal ended this call.")
    is_unfinished: bool = Field(
        description="Whether the same call would continue the work: the exit code is 1, or 130 if interrupted."
    )
    needs_operator: bool = Field(description="Whether a person has to act: the exit code is 3, unless unfinished.")
    verified: Verification | None = Field(
        description="Verification of everything that ever went to DST; null in a dry run and while unfinished."
    )
    seconds: float = Field(description="Duration of this call.")


Root = Compaction

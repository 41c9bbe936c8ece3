"""What JSON documents of several commands have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from compactor.core.records import FileStatus

Time = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}),
]
"""A time in UTC, as ISO 8601 with `Z`."""

Date = Annotated[str, WithJsonSchema({"type": "string", "format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"})]
"""A calendar day, `yyyy-mm-dd`."""

CountByReason = dict[str, int]


class Document(BaseModel):
    """A JSON object that has exactly the keys of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(Document):
    """Workers of a Glue job."""

    worker_type: str = Field(description="Worker type, such as `G.2X`.")
    workers: int = Field(description="Number of workers, including the driver's.")
    glue_version: str = Field(description="Glue version, such as `6.0`.")


class PricedJob(Job):
    """Workers of a Glue job, with their price."""

    dollars_per_hour: float = Field(description="Price of these workers for an hour.")
    dollars_per_month: float = Field(description="Price of these workers for a month of 730 hours.")


class RecentCommit(Document):
    """The summary of one commit."""

    manifest_id: str = Field(description="Manifest.")
    date: Date = Field(description="Date of the manifest.")
    decided_at: Time = Field(description="Time of the commit.")
    arrived_at: Time | None = Field(description="Time at which the manifest was created; null if unknown.")
    seconds: float = Field(description="Time from the start of the successful attempt to the commit.")
    input_files: int = Field(description="Number of compacted input files.")
    input_bytes: int = Field(description="Stored size of the compacted input files.")
    decoded_bytes: int = Field(description="Size of those files after decoding.")
    records: int = Field(description="Number of rows.")
    rejected_lines: int = Field(description="Number of rejected lines.")
    rejects: CountByReason = Field(description="Rejected lines by reason.")
    quarantined: dict[str, int] = Field(description="Quarantined files by status.")
    output_files: int = Field(description="Number of Parquet files with rows.")
    output_bytes: int = Field(description="Size of those Parquet files.")


class Run(Document):
    """A run of the job that sent a heartbeat in the last 40 seconds."""

    run_id: str = Field(description="Id of the run.")
    host: str = Field(description="Machine and boot that it runs on.")
    started_at: Time = Field(description="Time at which the run started.")
    heartbeat_at: Time = Field(description="Time of its last heartbeat.")


class Discrepancy(Document):
    """Something that does not add up."""

    manifest_id: str = Field(description="Manifest; empty if none is known.")
    where: str = Field(description="File or record.")
    expected: str = Field(description="What the ledger says.")
    found: str = Field(description="What is there.")


class VerifiedFile(Document):
    """A quarantined file."""

    uri: str = Field(description="URI of the file.")
    status: FileStatus = Field(description="Why the file was quarantined.")
    detail: str = Field(description="What was found, and what was expected.")
    redriven: bool = Field(description="Whether the file has been redriven.")
    manifest_id: str = Field(description="Manifest that names the file.")


class VerifiedManifest(Document):
    """A dead letter."""

    manifest_id: str = Field(description="Id of the manifest.")
    reason: str = Field(description="Reason, as one word.")
    message: str = Field(description="What is wrong, where, and what was expected.")
    redriven: bool = Field(description="Whether the manifest has been redriven.")


class Verification(Document):
    """What a verification has found."""

    manifests: int = Field(description="Number of committed manifests that were verified.")
    dead_letters: int = Field(description="Number of dead letters.")
    unfinished: int = Field(description="Number of manifests that are not done.")
    files: int = Field(description="Number of input files of the committed manifests.")
    files_by_status: dict[str, int] = Field(description="Those input files by status.")
    lines: int = Field(description="Number of lines in the compacted files.")
    rows: int = Field(description="Number of lines that became a row.")
    rejected_lines: int = Field(description="Number of rejected lines.")
    blank_lines: int = Field(description="Number of blank lines.")
    rejects_by_reason: CountByReason = Field(description="Rejected lines by reason.")
    output_files: int = Field(description="Number of Parquet files with rows.")
    output_bytes: int = Field(description="Size of those Parquet files.")
    inputs_compared: int = Field(description="Number of input files whose every value was compared with its row.")
    inputs_gone: int = Field(description="Number of input files that were deleted or replaced in the meantime.")
    discrepancies: list[Discrepancy] = Field(description="What does not add up; empty if everything does.")
    quarantined_files: list[VerifiedFile] = Field(description="Quarantined files.")
    dead_letter_manifests: list[VerifiedManifest] = Field(description="Dead letters.")

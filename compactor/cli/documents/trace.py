"""What `compactor trace THING --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import CountByReason, Document, Time
from compactor.core.records import FileStatus
from compactor.ops.redrive.redrive_log import Fate
from compactor.ops.redrive.selection import Kind
from compactor.ops.trace.trace import TracedKind, TraceState


class Attempt(Document):
    """An attempt at the manifest."""

    number: int = Field(description="Number of the attempt, from 1.")
    started_at: Time = Field(description="Start of the attempt.")
    run_id: str = Field(description="Run that made it.")
    alone: bool = Field(description="Whether no other manifest was in flight.")
    error: str = Field(description="How it failed; empty if it did not fail, or could not report it.")
    passing: bool = Field(description="Whether the failure does not count against the manifest.")


class FileReport(Document):
    """The record of one input file: records + rejected_lines + blank_lines = lines."""

    uri: str = Field(description="URI of the file.")
    status: FileStatus = Field(description="What became of the file.")
    detail: str = Field(description="What was found and what was expected; empty if `compacted`.")
    size_bytes: int = Field(description="Stored size.")
    etag: str = Field(description="Version that was read.")
    codec: str = Field(description="Compression; `none` if there is none.")
    decoded_bytes: int = Field(description="Size after decoding.")
    lines: int = Field(description="Number of lines.")
    records: int = Field(description="Number of rows.")
    rejected_lines: int = Field(description="Number of rejected lines.")
    blank_lines: int = Field(description="Number of blank lines.")
    rejects: CountByReason = Field(description="Rejected lines by reason.")
    reject_rows: int = Field(description="Rows in the rejects; a line that is too long has several.")


class Redrive(Document):
    """A manifest that redrives something of this one."""

    manifest_id: str = Field(description="Id of the new manifest.")
    kind: Kind = Field(description="What was redriven.")
    counts: CountByReason = Field(description="Files, or rejected lines, that it holds, by reason.")
    fate: Fate = Field(description="What became of the new manifest.")


class Trace(Document):
    """Where a file, a manifest, an output or a rejects file is."""

    uri: str = Field(description="What was asked for: a URI or a manifest id.")
    kind: TracedKind = Field(description="What it is.")
    state: TraceState = Field(description="State, as one word.")
    meaning: str = Field(description="State, in words.")
    exists: bool = Field(description="Whether the object exists now.")
    manifest_id: str = Field(description="Manifest that names or wrote it; empty if none is known.")
    date: str = Field(description="Date of that manifest; empty if it is not known.")
    manifest_uri: str = Field(description="URI of that manifest's object; empty if there is none.")
    attempts: list[Attempt] = Field(description="Attempts at that manifest.")
    report: FileReport | None = Field(description="Record of an input file; null before there is one.")
    files: list[FileReport] = Field(description="Input files of a manifest, or those that an output has rows of.")
    outputs: list[str] = Field(description="URIs of the manifest's Parquet files.")
    rejects: list[str] = Field(description="URIs of the manifest's rejects, if this file has any.")
    redriven_from: str = Field(description="Manifest that this one redrives; empty if none.")
    origin: str = Field(description="File whose rejected lines this file holds; empty if none.")
    redriven_as: list[Redrive] = Field(description="Redrives of it.")
    message: str = Field(description="Why it failed, or what else is known.")
    next_moves: list[str] = Field(description="Commands to run next; empty if there is nothing to do.")
    needs_operator: bool = Field(
        description="Whether it is quarantined or a dead letter and not redriven: the exit code is 3."
    )
    searched: str = Field(description="Places that were searched; empty if no search was needed.")


Root = Trace

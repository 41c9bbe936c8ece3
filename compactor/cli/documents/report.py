"""What `compactor report --json` prints."""

from typing import Literal

from pydantic import Field

from compactor.cli.documents.common import CountByReason, Document, Job, Time
from compactor.core.records import FileStatus
from compactor.cost.cost import Basis
from compactor.ops.report.figures import Health


class Period(Document):
    """A period, without its end."""

    since: Time = Field(description="Start of the period.")
    until: Time = Field(description="End of the period, which is not part of it.")


class Point(Document):
    """One reason for the verdict."""

    word: Literal["look", "act"] = Field(description="How serious it is.")
    reason: str = Field(description="What it is, and what to do.")


class Verdict(Document):
    """How the period went."""

    word: Health = Field(description="Verdict, as one word.")
    headline: str = Field(description="Verdict, as a sentence.")
    points: list[Point] = Field(description="Reasons, most serious first; empty if all is in order.")


class Durations(Document):
    """Time from the start of the successful attempt to the rows being visible, over manifests."""

    manifests: int = Field(description="Number of manifests.")
    p50_seconds: float = Field(description="Half took at most this long.")
    p99_seconds: float = Field(description="99 % took at most this long.")
    longest_seconds: float = Field(description="The longest.")


class Latency(Document):
    """Time from a file's arrival to its rows being visible."""

    files: int = Field(description="Number of files.")
    p50_seconds: float = Field(description="Half took at most this long.")
    p99_seconds: float = Field(description="99 % took at most this long.")
    longest_seconds: float = Field(description="The longest.")


class Work(Document):
    """Work that was done."""

    manifests: int = Field(description="Number of manifests that were committed and published.")
    input_files: int = Field(description="Number of compacted input files.")
    input_bytes: int = Field(description="Their stored size.")
    output_files: int = Field(description="Number of Parquet files with rows.")
    output_bytes: int = Field(description="Size of those Parquet files.")
    rows: int = Field(description="Number of rows.")
    rejected_lines: int = Field(description="Number of rejected lines.")
    durations: Durations | None = Field(description="How long manifests took; null if there are none.")
    latency: Latency | None = Field(description="How long files took; null if there are none.")


class Bucket(Work):
    """Work that was done in a part of the period."""

    since: Time = Field(description="Start of the bucket.")
    until: Time = Field(description="End of the bucket, which is not part of it.")


class Totals(Work):
    """Work of the whole period."""

    lines: int = Field(description="Number of lines: rows, rejected and blank lines.")
    blank_lines: int = Field(description="Number of blank lines.")
    dead_letters: int = Field(description="Number of manifests that became dead letters.")
    failed_attempts: int = Field(description="Number of attempts that ended without an outcome.")
    redrives: int = Field(description="Number of redrives.")
    at_work_seconds: float = Field(description="Time during which any manifest was in progress.")
    clocks_off: int = Field(description="Manifests dated more than five minutes off the store's time, which counts.")


class Bin(Document):
    """A bar of the histogram of sizes."""

    from_bytes: float = Field(description="Files above this size.")
    to_bytes: float | None = Field(description="Files up to this size; null for no limit.")
    counted: int = Field(description="Files of manifests that could fill an output file.")
    of_small_manifests: int = Field(description="Files of manifests that could not.")


class Sizes(Document):
    """Sizes of the output files."""

    target_file_bytes: int = Field(description="Target size.")
    counted: int = Field(description="Files of manifests that could fill one.")
    hits: int = Field(description="Those within 25 % of the target.")
    bins: list[Bin] = Field(description="Histogram, smallest first.")


class Sample(Document):
    """A rejected line."""

    source_uri: str = Field(description="File that has the line.")
    line_number: int = Field(description="Number of the line, from 1.")
    head: str = Field(description="Its first 80 bytes, as text.")
    length_bytes: int = Field(description="Length of the line, or of its first piece.")


class Reject(Document):
    """Rejected lines of one reason."""

    reason: str = Field(description="Reason, as one word.")
    lines: int = Field(description="Number of lines.")
    manifests: int = Field(description="Number of manifests that have some of them.")
    samples: list[Sample] = Field(description="A few of the lines; empty with `--no-samples`.")


class DeadLetter(Document):
    """A dead letter of the period."""

    done_at: Time = Field(description="Time of the decision.")
    manifest_id: str = Field(description="Id of the manifest.")
    reason: str = Field(description="Reason, as one word.")
    message: str = Field(description="What is wrong, where, and what was expected.")
    redriven: bool | None = Field(description="Whether it has been redriven; null if its records cannot be read.")


class DeadLetters(Document):
    """Manifests that became dead letters."""

    manifests: int = Field(description="Number of all dead letters of any time, redriven or not.")
    by_reason: CountByReason = Field(description="Dead letters of the period by reason.")
    latest: list[DeadLetter] = Field(description="Newest of the period, redriven or not.")


class QuarantinedFile(Document):
    """A quarantined file of the period."""

    done_at: Time = Field(description="Time at which its manifest was done.")
    uri: str = Field(description="URI of the file.")
    manifest_id: str = Field(description="Manifest that names the file.")
    status: FileStatus = Field(description="Why the file was quarantined.")
    detail: str = Field(description="What was found, and what was expected.")
    redriven: bool | None = Field(description="Whether it has been redriven; null if its records cannot be read.")


class QuarantinedFiles(Document):
    """Quarantined input files."""

    by_status: dict[str, int] = Field(description="Files of the period by status.")
    latest: list[QuarantinedFile] = Field(description="Newest that need or needed an operator, at most 50.")


class AddedColumn(Document):
    """A column that a version added."""

    name: str = Field(description="Name in the Parquet files.")
    type: str = Field(description="Type, such as `string` or `decimal(10,2)`.")
    source_uri: str | None = Field(
        description="First file that had the key; empty or null if it was declared or not recorded."
    )


class SchemaChange(Document):
    """A schema version of the period."""

    version: int = Field(description="Number of the version, from 1.")
    created_at: Time = Field(description="Time at which it was created.")
    manifest_id: str = Field(description="Manifest that caused it.")
    columns: int = Field(description="Number of its columns.")
    added_columns: int = Field(description="Number of columns that it added.")
    added: list[AddedColumn] = Field(description="The first 40 of those.")


class Schema(Document):
    """The columns."""

    version: int = Field(description="Number of the latest version; 0 before the first.")
    columns: int = Field(description="Number of its columns.")
    changes: list[SchemaChange] = Field(description="Versions of the period, oldest first, at most 100.")


class Unreadable(Document):
    """Records of the ledger that are damaged."""

    records: int = Field(description="Number of records.")
    messages: list[str] = Field(description="What is wrong with the first of them.")


class ComparedJob(Job):
    """A common job to compare with."""

    dollars_elapsed: float = Field(description="Cost of the whole period.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The same per terabyte; null without input.")


class Service(Document):
    """An estimate of requests and other services."""

    service: str = Field(description="AWS service.")
    item: str = Field(description="What is paid for.")
    basis: Basis = Field(description="Whether the quantity was given, counted from the code, or assumed.")
    dollars: float = Field(description="Cost of the period.")


class Cost(Document):
    """Cost of the period, at list prices."""

    job: Job = Field(description="Workers that the cost is about.")
    is_job_named: bool = Field(description="Whether the caller named them; the ledger does not record workers.")
    is_local: bool = Field(description="Whether the state is on a disk, so that nothing was paid to AWS.")
    elapsed_seconds: float = Field(description="Length of the period.")
    at_work_seconds: float = Field(description="Time during which any manifest was in progress.")
    dollars_elapsed: float = Field(description="Cost of those workers for the whole period.")
    dollars_at_work: float = Field(description="Cost of those workers for the time at work.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The former per terabyte; null without input.")
    dollars_per_terabyte_at_work: float | None = Field(description="The latter per terabyte; null without input.")
    compared: ComparedJob = Field(description="A common job to compare with.")
    services: list[Service] = Field(description="Estimate of other services; empty without input.")


class Report(Document):
    """The figures of a period. No page is written unless `--out` names a file."""

    as_of: Time = Field(description="Time at which the ledger was read.")
    state_folder: str = Field(description="The place `paths.state`.")
    period: Period = Field(description="The period.")
    sla_seconds: float = Field(description="Longest time a file should take to be visible.")
    needs_operator: bool = Field(description="Whether something of the period needs a person: the exit code is 3.")
    verdict: Verdict = Field(description="How the period went.")
    totals: Totals = Field(description="Work of the whole period.")
    bucket_seconds: float = Field(description="Length of a bucket; the first and the last may be shorter.")
    buckets: list[Bucket] = Field(description="Parts of the period in order, at most 49.")
    sizes: Sizes = Field(description="Sizes of the output files.")
    rejects: list[Reject] = Field(description="Rejected lines by reason, most frequent first.")
    dead_letters: DeadLetters = Field(description="Manifests that became dead letters.")
    quarantined_files: QuarantinedFiles = Field(description="Quarantined input files.")
    schema_: Schema = Field(alias="schema", description="The columns.")
    unreadable: Unreadable = Field(description="Records of the ledger that are damaged.")
    cost: Cost = Field(description="Cost of the period.")


Root = Report

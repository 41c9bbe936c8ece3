"""What `compactor report --json` prints."""

from typing import Literal

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.control import health
from compactor.cost.prices import JobSize
from compactor.ops.redrive.quarantined_file import QuarantinedFile
from compactor.ops.report import figures
from compactor.ops.report.period import Period
from compactor.ops.report.spending import Spending


class Point(Document, of=health.Finding, shown=["severity"], without=["subject"]):
    """One reason for the verdict."""

    severity: Literal["look", "act"] = Field(description="How serious it is.")


class Verdict(Document):
    """How the period went."""

    severity: health.Severity = Field(description="Verdict, as one word: the worst of the reasons.")
    headline: str = Field(description="Verdict, as a sentence.")
    points: list[Point] = Field(description="Reasons, most serious first; empty if all is in order.")


class Durations(Document, of=figures.Spread, without=["values"]):
    """Time from the start of the successful attempt to the rows being visible, over manifests."""

    manifests: int = Field(description="Number of manifests.")


class Latency(Document, of=figures.Spread, without=["values"]):
    """Time from a file's arrival to its rows being visible."""

    files: int = Field(description="Number of files.")


class Work(Document, of=figures.Work, without=["arrivals"]):
    """Work that was done."""

    durations: Durations | None = Field(description="How long manifests took; null if there are none.")
    latency: Latency | None = Field(description="How long files took; null if there are none.")


class Bucket(Work):
    """Work that was done in a part of the period."""

    since: Time = Field(description="Start of the bucket.")
    until: Time = Field(description="End of the bucket, which is not part of it.")


class Totals(Work, of=figures.Totals, without=["arrivals", "durations", "quarantined"]):
    """Work of the whole period."""


class DeadLetters(Document):
    """Manifests that became dead letters."""

    manifests: int = Field(description="Number of all dead letters of any time, redriven or not.")
    by_reason: dict[str, int] = Field(description="Dead letters of the period by reason.")
    latest: list[figures.DeadLetterLine] = Field(description="Newest of the period, redriven or not.")


class QuarantinedFiles(Document):
    """Quarantined input files."""

    by_status: dict[str, int] = Field(description="Files of the period by status.")
    latest: list[QuarantinedFile] = Field(description="Newest that need or needed an operator, at most 50.")


class Schema(Document):
    """The columns."""

    version: int = Field(description="Number of the latest version; 0 before the first.")
    columns: int = Field(description="Number of its columns.")
    changes: list[figures.SchemaChange] = Field(description="Versions of the period, oldest first, at most 100.")


class Unreadable(Document):
    """Records of the ledger that are damaged."""

    records: int = Field(description="Number of records.")
    messages: list[str] = Field(description="What is wrong with the first of them.")


class ComparedJob(Document, of=JobSize):
    """A common job to compare with."""

    dollars_elapsed: float = Field(description="Cost of the whole period.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The same per terabyte; null without input.")


class Cost(Document, of=Spending, without=["classic", "input_bytes"]):
    """Cost of the period, at list prices."""

    dollars_elapsed: float = Field(description="Cost of those workers for the whole period.")
    dollars_at_work: float = Field(description="Cost of those workers for the time at work.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The former per terabyte; null without input.")
    dollars_per_terabyte_at_work: float | None = Field(description="The latter per terabyte; null without input.")
    compared: ComparedJob = Field(description="A common job to compare with.")


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
    sizes: figures.Sizes = Field(description="Sizes of the output files.")
    rejects: list[figures.RejectReason] = Field(description="Rejected lines by reason, most frequent first.")
    dead_letters: DeadLetters = Field(description="Manifests that became dead letters.")
    quarantined_files: QuarantinedFiles = Field(description="Quarantined input files.")
    schema_: Schema = Field(alias="schema", description="The columns.")
    unreadable: Unreadable = Field(description="Records of the ledger that are damaged.")
    cost: Cost = Field(description="Cost of the period.")


Root = Report

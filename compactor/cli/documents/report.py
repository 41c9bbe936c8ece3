"""What `compactor report --json` prints."""

from typing import Literal

from pydantic import Field

from compactor.cli.documents.common import DESCRIPTIONS, Document, Time
from compactor.control.diagnosis import health
from compactor.cost.measured_cost import MEASURED_DOLLARS
from compactor.cost.prices import JobSize
from compactor.ops.report import figures, verdict
from compactor.ops.report.report import Spending


class Point(Document, of=health.Finding, shown=["severity"], without=["subject"]):
    """One reason for the verdict."""

    severity: Literal["look", "act"] = Field(description="How serious it is.")


class Verdict(Document, of=verdict.Verdict, shown=["headline"]):
    """How the period went."""

    points: list[Point] = Field(description="Reasons, most serious first; empty if all is in order.")


class ComparedJob(Document, of=JobSize):
    """A common job to compare with."""

    dollars_elapsed: float = Field(description="Cost of the whole period.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The same per terabyte; null without input.")


class Cost(
    Document,
    of=Spending,
    shown=MEASURED_DOLLARS,
    without=["commits", "since", "until", "input_files", "input_bytes", "dollars_per_hour"],
):
    """Cost of the period, at list prices. Dollars are null for work on a machine whose price is not known."""

    job: JobSize | None = Field(description="The workers to price; null without a price.")
    dollars_at_work: float | None = Field(description=f"{DESCRIPTIONS['dollars_at_work'][:-1]}; null without a price.")
    dollars_elapsed: float | None = Field(description=f"{DESCRIPTIONS['dollars_elapsed'][:-1]}; null without a price.")
    elapsed_seconds: float = Field(description="Length of the period.")
    compared: ComparedJob | None = Field(description="A common job to compare with; null without a price.")


class Report(Document, of=figures.Figures, without=["schema"]):
    """The figures of a period. No page is written unless `--out` names a file."""

    as_of: Time = Field(description="Time at which the ledger was read.")
    state_folder: str = Field(description="The place `paths.state`.")
    folder: str = Field(description="The folder that `compact` wrote, as commands name it; empty for a job.")
    sla_seconds: float | None = Field(
        description="Longest time a file should take to be visible; null for a folder without `control.sla_seconds`."
    )
    needs_operator: bool = Field(description="Whether something of the period needs a person: the exit code is 3.")
    verdict: Verdict = Field(description="How the period went.")
    schema_: figures.Schema = Field(alias="schema", description="The columns.")
    cost: Cost = Field(description="Cost of the period.")


class StreamReport(Report):
    """The figures of one stream."""

    stream: str = Field(description="Name of the stream.")


class Streams(Document):
    """The figures of each of several streams. No page is written."""

    streams: list[StreamReport] = Field(description="Streams, as in the settings.")


Root = Report | Streams

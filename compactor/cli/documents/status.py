"""What `compactor status --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.control.diagnosis import health
from compactor.ledger import backlog
from compactor.ops.status import values
from compactor.schema.schema import ColumnsUsed


class State(Document, of=health.Finding, shown=["word", "severity"], without=["subject"]):
    """How the job is doing."""


class Backlog(Document, of=backlog.Backlog, shown=["is_extrapolated"], without=["left_to_others"]):
    """Work that is not done."""


class Status(Document, of=values.Status, without=["schema"]):
    """How the job is doing. It reads at most 200 waiting manifests, 64 commit summaries and 50 dead letters."""

    state: State = Field(description="Summary.")
    backlog: Backlog = Field(description="Work that is not done.")
    columns: ColumnsUsed = Field(description="How many of the columns for keys are taken.")
    schema_: values.SchemaSeen = Field(alias="schema", description="The latest schema version.")


class StatusFailure(Document):
    """What `--watch` prints when nothing can be read."""

    as_of: Time = Field(description="Time of the attempt to read.")
    error: str = Field(description="Why nothing could be read.")


class StreamStatus(Status):
    """How the work on one stream is doing."""

    stream: str = Field(description="Name of the stream.")


class Streams(Document):
    """How the work on each of several streams is doing."""

    streams: list[StreamStatus] = Field(description="Streams, as in the settings.")


Root = Status | StatusFailure | Streams

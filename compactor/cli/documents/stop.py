"""What `compactor stop --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Run


class StoppedRun(Run):
    """A run of the job."""

    process_id: int = Field(description="Id of the driver's process on that machine.")


class Stop(Document):
    """Which runs were asked to stop."""

    asked: list[StoppedRun] = Field(description="Runs that were asked to stop.")
    running: list[StoppedRun] = Field(description="Runs that were still alive after `--wait`; empty without it.")


Root = Stop

"""What `compactor stop --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.core.documents.records import RunHeartbeat


class Stop(Document):
    """Which runs were asked to stop."""

    asked: list[RunHeartbeat] = Field(description="Runs that were asked to stop.")
    running: list[RunHeartbeat] = Field(description="Runs that were still alive after `--wait`; empty without it.")


Root = Stop

"""What `compactor control --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.control import plane, snapshot


class Backlog(Document):
    """Manifests that wait."""

    manifests: int = Field(description="Number of manifests.")
    oldest_seconds: float = Field(description="Age of the oldest; 0 if there is none.")


class Snapshot(Document, of=snapshot.Snapshot, without=["backlogs", "whole_backlog"]):
    """What the control plane saw. Null means unknown, never zero."""

    backlog: Backlog | None = Field(description="Manifests that wait.")
    unknown: dict[str, str] = Field(description="Why a source could not be read, by source.")


class Check(Document, of=plane.Check):
    """One check of the control plane. With `--dry-run` nothing is done."""

    snapshot: Snapshot = Field(description="What the control plane saw.")


class BreakerClosed(Document):
    """What `--close-breaker` prints."""

    closed_at: Time = Field(description="Failures before this time no longer count.")


Root = Check | BreakerClosed

"""What `compactor plan --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Date, Document, Time
from compactor.manifests import plan as figures
from compactor.manifests.kinesis import stream_plan


class PlannedManifest(Document):
    """A manifest that was written, or would be."""

    manifest_id: str | None = Field(description="Id of the manifest; null in a dry run, which takes none.")
    date: Date = Field(description="Date of the manifest.")
    files: int = Field(description="Number of files it names.")
    bytes: int = Field(description="Stored size of those files.")


class DatedFiles(Document, of=figures.DatedFiles):
    """The planned files that one rule dated."""

    first_date: Date = Field(description="The earliest of them.")
    last_date: Date = Field(description="The latest of them.")


class ReadInventory(Document):
    """The S3 Inventory that was planned from."""

    uri: str = Field(description="Its manifest.json.")
    bucket: str = Field(description="Bucket whose objects it lists.")
    created_at: Time = Field(description="Time at which S3 began to list them.")
    data_files: int = Field(description="Number of its data files.")
    dollars: float = Field(description="Cost of claims and requests for planning, at list prices.")


class CutOff(Document):
    """A partition that ends before offsets that are in manifests."""

    partition: int = Field(description="Its number.")
    end: int = Field(description="Offset at which it ends now.")
    planned_to: int = Field(description="Offset at which planning goes on once it has more.")


class PlannedTopic(Document):
    """What a person has to know of a topic that was planned."""

    removed: list[str] = Field(description="Ranges that retention removed before they were planned.")
    cut_off: list[CutOff] = Field(description="Partitions whose log was cut off.")
    former_ids: list[str] = Field(description="Ids of topics of the same name that are gone, and were planned.")
    troubles: list[str] = Field(
        description="Why manifests that planners left could not be finished; empty if there are none."
    )


class PlannedGap(Document, of=stream_plan.Gap):
    """Where records may be lost to retention before they were landed."""


class PlannedStream(Document):
    """What a person has to know of a stream that was planned."""

    lines: int = Field(description="Number of lines that were landed, or would be.")
    gaps: list[PlannedGap] = Field(description="Where records may be lost; each is told once.")
    strays: int = Field(description="Packed records of other shards, which were left out.")
    closed: int = Field(description="Number of shards that ended.")
    waiting: int = Field(description="Number of shards whose parents are not landed whole.")
    has_more: bool = Field(description="Whether more is left for the next plan.")
    behind_seconds: float | None = Field(
        description="For how long the oldest record that is not landed may have waited; null if no shard was read."
    )
    troubles: list[str] = Field(description="What kept the plan from landing more; empty if nothing did.")
    former_ids: list[str] = Field(description="Ids of streams of the same name that are gone, and were landed.")


class Plan(Document):
    """What was planned. With `--dry-run` nothing is claimed or written."""

    dry_run: bool = Field(description="Whether nothing was claimed or written.")
    manifests: list[PlannedManifest] = Field(description="Manifests that were written, or would be.")
    dated: list[DatedFiles] = Field(description="Planned files by the rule that gave them their dates.")
    planned_before: int = Field(description="Number of files that are in a manifest already.")
    skipped: dict[str, int] = Field(description="Objects that are no data, by reason.")
    misdated: int = Field(
        description="Planned files whose names give a date outside the window; they have the day of their arrival."
    )
    left_manifests: int = Field(description="Number of manifests beyond the bound, which the next plan writes.")
    left_files: int = Field(description="Number of files in those.")
    held: int = Field(description="Number of files that another planner has claimed.")
    held_until: Time | None = Field(description="End of the last of those leases; null if nothing is held.")
    stalled: bool = Field(description="Whether planning ended early because the job did not keep up.")
    inventory: ReadInventory | None = Field(description="Inventory that was planned from; null for a listing.")
    topic: PlannedTopic | None = Field(description="What is particular to a topic of Kafka; null for files.")
    stream: PlannedStream | None = Field(description="What is particular to a stream of Kinesis; null for files.")


Root = Plan

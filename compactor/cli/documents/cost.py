"""What `compactor cost --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Date, Document, Time
from compactor.cost import cost, prices
from compactor.cost.measured_cost import MEASURED_DOLLARS, MeasuredCost, StreamCost
from compactor.cost.prices import DOLLARS, CostLine, JobSize
from compactor.cost.worker_needs import WorkerNeed


class SizedJob(Document, of=JobSize, shown=["dpu"]):
    """Workers of a Glue job, with their DPU."""


class PricedJob(Document, of=JobSize, shown=DOLLARS):
    """Workers of a Glue job, with their price."""


class Price(Document, of=prices.Price):
    """A list price."""

    as_of: Date = Field(description="Day on which it was looked up.")


class Item(Document, of=CostLine, shown=DOLLARS):
    """One item of the estimate."""

    price: Price = Field(description="Price of a unit.")


class Measured(Document, of=MeasuredCost, shown=["elapsed_seconds", *MEASURED_DOLLARS]):
    """What the latest commits would cost on these workers."""


class NeededJob(Document, of=WorkerNeed, shown=[*DOLLARS, "share_of_compared"]):
    """Enough workers of one type, on one version of Glue."""


class EngineNeed(Document):
    """What one engine needs."""

    bytes_per_second_per_core: float = Field(description="Measured speed of a core.")
    jobs: list[NeededJob] = Field(description="Enough workers, one entry for each type and Glue version.")


class Bench(Document):
    """A result of the benchmark."""

    cores: int = Field(description="Number of cores.")
    machine: str = Field(description="Machine, in words.")
    measured_at: Time = Field(description="Time of the benchmark.")


class Needed(Document):
    """Workers that the load needs, by the last benchmark."""

    bench: Bench = Field(description="The benchmark.")
    busy_share_at_most: float = Field(description="Highest share of the time that workers may be busy.")
    engines: dict[str, EngineNeed] = Field(description="What each engine needs, by its name.")


class Estimate(Document, of=cost.Estimate, shown=[*DOLLARS, "dollars_per_terabyte"]):
    """What a load costs, at list prices."""

    job: SizedJob = Field(description="The workers.")
    region: str = Field(description="Region whose prices were asked for.")
    has_prices_of_region: bool = Field(description="Whether they are on file; if not, those of us-east-1 count.")
    lines: list[Item] = Field(description="The items.")
    kept: list[Item] = Field(description="What is kept, once it is as old as it gets; not in the totals.")
    producers: list[Item] = Field(
        description="What the topic of --topic costs for its producers and all readers; not in the totals."
    )
    nat: Item = Field(description="What a NAT gateway would add; not in the totals.")
    compared: PricedJob = Field(description="A common job to compare with.")
    measured: Measured | None = Field(
        description="What the latest commits, or with --from-ledger all of the period, would cost on these workers; "
        "null without settings or commits."
    )
    jobs: int = Field(description="Number of jobs that have these workers together; 1 unless streams have their own.")
    streams: list[StreamCost] = Field(
        description="What each of several streams has of the cost; empty without streams."
    )
    dollars_of_ledger: float | None = Field(description="Cost of the period, all services; null without --from-ledger.")
    not_counted: list[str] = Field(description="What the estimate leaves out, in words.")
    prices: dict[str, Price] = Field(description="The table of prices, by name.")
    needed: Needed | None = Field(description="Workers that the load needs; null without a benchmark.")


Root = Estimate

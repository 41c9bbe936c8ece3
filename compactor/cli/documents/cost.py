"""What `compactor cost --json` prints."""

from typing import Literal

from pydantic import Field

from compactor.cli.documents.common import Date, Document, Job, PricedJob, Time
from compactor.cost.cost import Basis
from compactor.engines.engine import EngineName


class Load(Document):
    """The input."""

    files_per_hour: float = Field(description="Files per hour, as given.")
    file_bytes: int = Field(description="Size of a file.")


class SizedJob(Job):
    """Workers of a Glue job, with their DPU."""

    dpu: float = Field(description="DPU of all workers together.")


class Shape(Document):
    """How the work is divided."""

    engine: EngineName = Field(description="Engine.")
    target_manifest_bytes: int = Field(description="Size of the files that make up a manifest.")
    target_file_bytes: int = Field(description="Size of an output file.")
    max_wait_seconds: float = Field(description="Longest time a file waits for its manifest to fill.")
    trigger_interval_seconds: float = Field(description="Time between two micro-batches.")
    ratio: float = Field(description="Parquet bytes per input byte.")


class Price(Document):
    """A list price."""

    dollars: float = Field(description="Price of `per` units.")
    per: int = Field(description="Number of units that the price is for.")
    unit: str = Field(description="Unit.")
    is_monthly: bool = Field(description="Whether a unit is paid for a month.")
    source: str = Field(description="Where the price was looked up.")
    as_of: Date = Field(description="Day on which it was looked up.")


class Item(Document):
    """One item of the estimate."""

    service: str = Field(description="AWS service.")
    item: str = Field(description="What is paid for.")
    basis: Basis = Field(description="Whether the quantity was given, counted from the code, or assumed.")
    quantity: float = Field(description="Quantity, in units of the price.")
    quantity_per: Literal["hour", "month"] = Field(description="Period of the quantity.")
    price: Price = Field(description="Price of a unit.")
    dollars_per_hour: float = Field(description="Cost per hour.")
    dollars_per_month: float = Field(description="Cost per month of 730 hours.")


class Measured(Document):
    """What the latest commits would cost on these workers."""

    commits: int = Field(description="Number of commits, at most 64.")
    since: Time = Field(description="Start of the first.")
    until: Time = Field(description="End of the last.")
    input_files: int = Field(description="Number of compacted files.")
    input_bytes: int = Field(description="Their stored size.")
    at_work_seconds: float = Field(description="Time during which any of them was in progress.")
    elapsed_seconds: float = Field(description="Time from `since` to `until`.")
    dollars_per_hour: float = Field(description="Price of the workers for an hour.")
    dollars_at_work: float = Field(description="Cost of the time at work.")
    dollars_elapsed: float = Field(description="Cost of the whole time.")
    dollars_per_terabyte_at_work: float | None = Field(description="The former per terabyte; null without input.")
    dollars_per_terabyte_elapsed: float | None = Field(description="The latter per terabyte; null without input.")


class NeededJob(PricedJob):
    """Enough workers of one type, on one version of Glue."""

    vcpu_per_worker: int = Field(description="Virtual CPUs of a worker.")
    busy_share: float = Field(description="Share of the time that workers are busy, the driver's not counted.")
    dollars_per_terabyte: float = Field(description="Cost per terabyte of stored input.")
    share_of_compared: float = Field(description="Cost as a fraction of the compared job's.")


class EngineNeed(Document):
    """What one engine needs."""

    bytes_per_second_per_core: float = Field(description="Measured speed of a core.")
    jobs: list[NeededJob] = Field(description="Enough workers, one entry for each type and Glue version.")


class Bench(Document):
    """A result of the benchmark."""

    bytes_per_second: dict[str, float] = Field(description="Stored input per second on all cores, by engine.")
    cores: int = Field(description="Number of cores.")
    machine: str = Field(description="Machine, in words.")
    measured_at: Time = Field(description="Time of the benchmark.")


class Needed(Document):
    """Workers that the load needs, by the last benchmark."""

    bench: Bench = Field(description="The benchmark.")
    busy_share_at_most: float = Field(description="Highest share of the time that workers may be busy.")
    engines: dict[str, EngineNeed] = Field(description="What each engine needs, by its name.")


class Estimate(Document):
    """What a load costs, at list prices."""

    load: Load = Field(description="The input.")
    job: SizedJob = Field(description="The workers.")
    shape: Shape = Field(description="How the work is divided.")
    manifests_per_hour: float = Field(description="Manifests that the load makes in an hour.")
    outputs_per_manifest: int = Field(description="Parquet files of each manifest.")
    lines: list[Item] = Field(description="The items.")
    dollars_per_hour: float = Field(description="Total per hour.")
    dollars_per_month: float = Field(description="Total per month of 730 hours.")
    dollars_per_terabyte: float = Field(description="Total per terabyte of stored input.")
    compared: PricedJob = Field(description="A common job to compare with.")
    measured: Measured | None = Field(
        description="What the latest commits would cost on these workers; null without settings or commits."
    )
    not_counted: list[str] = Field(description="What the estimate leaves out, in words.")
    prices: dict[str, Price] = Field(description="The table of prices, by name.")
    needed: Needed | None = Field(description="Workers that the load needs; null without a benchmark.")


Root = Estimate

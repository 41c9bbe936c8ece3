"""Estimates the cost of a load at list prices, item by item. No I/O."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compactor.cost import request_counts
from compactor.cost.prices import HOURS_A_MONTH, PRICES, TERABYTE, HourlyCost, JobSize, Price
from compactor.cost.request_counts import Requests
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import planned_files
from compactor.telemetry.metrics import CATALOGUE

REFERENCE_RATIO = 0.24
"""Parquet bytes per input byte of the events that the benchmark uses."""

Basis = Literal["given", "counted", "assumed"]
"""Where a quantity comes from: options, the code (tests hold the two together), or judgement without a measurement."""

# Assumed, not measured. The sealer and the control plane run every minute; the builder runs once per batch of events.
FUNCTION_GB = 1.0  # of the largest function
ALARMS = 12
_FILES_PER_BUILD = 500
_BUILD_SECONDS, _SEAL_SECONDS, _CONTROL_SECONDS = 3.0, 2.0, 2.0
# S3 requests of a call. Each function reads the settings and the summaries of 64 commits.
_OF_A_BUILD, _OF_A_SEAL, _OF_A_CHECK = Requests(gets=67, puts=5), Requests(gets=70, puts=10), Requests(gets=69, puts=3)
_REPEATED_SHARE = 0.01  # of the events, sent twice by S3
_IDLE_POLLS_PER_HOUR = 5 * 3600 / 20  # of the queue by Lambda's five pollers, 20 s each

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Load:
    """The input.

    Attributes:
        files_per_hour: Files per hour, as given.
        file_bytes: The stored size of a file.
    """

    files_per_hour: float
    file_bytes: int

    @property
    def bytes_per_hour(self) -> float:
        return self.files_per_hour * self.file_bytes

    @property
    def terabytes_per_hour(self) -> float:
        return self.bytes_per_hour / TERABYTE


@dataclass(frozen=True, slots=True)
class Shape:
    """How the settings divide the work.

    Attributes:
        target_manifest_bytes: The size of the files that make up a manifest.
        target_file_bytes: The size of an output file.
        max_wait_seconds: The longest time a file waits for its manifest to fill.
        trigger_interval_seconds: The time between two micro-batches.
        ratio: Parquet bytes per input byte.
    """

    engine: EngineName
    target_manifest_bytes: int
    target_file_bytes: int
    max_wait_seconds: float
    trigger_interval_seconds: float
    ratio: float = REFERENCE_RATIO

    def manifests_per_hour(self, load: Load) -> float:
        """Full manifests; under a light load, those sealed by age, but no more than there are files."""
        by_age = min(load.files_per_hour, _HOUR_SECONDS / self.max_wait_seconds)
        return max(load.bytes_per_hour / self.target_manifest_bytes, by_age)


@dataclass(frozen=True, slots=True)
class CostLine(HourlyCost):
    """One item of an estimate.

    Attributes:
        quantity: The quantity, in units of the price.
        quantity_per: The period of the quantity: a month where the price is monthly.
    """

    service: str
    item: str
    basis: Basis
    quantity: float
    price: Price

    @property
    def quantity_per(self) -> Literal["hour", "month"]:
        return "month" if self.price.is_monthly else "hour"

    @property
    def dollars_per_hour(self) -> float:
        return self.price.of(self.quantity) / (HOURS_A_MONTH if self.price.is_monthly else 1)


@dataclass(frozen=True, slots=True)
class Estimate(HourlyCost):
    """The cost of a load.

    Attributes:
        load: The input.
        manifests_per_hour: Manifests that the load makes in an hour.
        outputs_per_manifest: Parquet files of each manifest.
    """

    load: Load
    job: JobSize
    manifests_per_hour: float
    outputs_per_manifest: int
    lines: tuple[CostLine, ...]

    @property
    def dollars_per_hour(self) -> float:
        return sum(line.dollars_per_hour for line in self.lines)

    @property
    def dollars_per_terabyte(self) -> float:
        return self.dollars_per_hour / self.load.terabytes_per_hour


def estimate(load: Load, job: JobSize, shape: Shape) -> Estimate:
    """Estimate the cost of a steady load, with the job up around the clock.

    Args:
        load: The input; not empty.
        job: The workers, which are assumed to be enough for the load.
        shape: How the work is divided.
    """
    manifests = shape.manifests_per_hour(load)
    outputs = planned_files(round(load.bytes_per_hour / manifests), shape.ratio, shape.target_file_bytes)
    builds, triggers = load.files_per_hour / _FILES_PER_BUILD, _HOUR_SECONDS / shape.trigger_interval_seconds
    lines = (
        CostLine("Glue", "DPU-hours", "given", job.dpu, job.price),
        *_s3("compactor", "counted", _of_compactor(load, manifests, outputs)),
        *_of_engine(load, shape, manifests, outputs),
        *_s3("stream", "assumed", request_counts.OF_TRIGGER * triggers),
        *_s3("functions", "assumed", _OF_A_BUILD * builds + (_OF_A_SEAL + _OF_A_CHECK) * 60),
        *_other_services(load, builds, triggers),
    )
    return Estimate(load, job, manifests, outputs, lines)


def _of_compactor(load: Load, manifests: float, outputs: int) -> Requests:
    """Requests of either engine, the one pass over the input included."""
    return (
        request_counts.of_manifest(outputs) * manifests
        + request_counts.of_inspected_file(load.file_bytes) * load.files_per_hour
        + request_counts.of_heartbeat()
    )


def _of_engine(load: Load, shape: Shape, manifests: float, outputs: int) -> Iterator[CostLine]:
    """Further requests of this engine."""
    if shape.engine == "native":
        output_bytes = math.ceil(load.bytes_per_hour / manifests * shape.ratio / outputs)
        return _s3("native", "counted", request_counts.of_streamed_output(output_bytes) * (outputs * manifests))
    converted = request_counts.OF_CONVERTED_FILE * load.files_per_hour
    return _s3("Spark", "assumed", request_counts.of_conversion(outputs) * manifests + converted)


def _s3(who: str, basis: Basis, requests: Requests) -> Iterator[CostLine]:
    if requests.gets:  # the native engine sends none of its own
        yield CostLine("S3", f"GET, {who}", basis, requests.gets, PRICES["s3_get"])
    yield CostLine("S3", f"PUT, {who}", basis, requests.puts, PRICES["s3_put"])


def _other_services(load: Load, builds: float, triggers: float) -> Iterator[CostLine]:
    events, calls = load.files_per_hour * (1 + _REPEATED_SHARE), builds + 2 * 60
    seconds = builds * _BUILD_SECONDS + 60 * (_SEAL_SECONDS + _CONTROL_SECONDS)
    items: tuple[tuple[str, str, Basis, float, str], ...] = (
        # S3 sends events one by one; Lambda receives and deletes them in tens.
        ("SQS", "requests", "assumed", events * 1.2 + _IDLE_POLLS_PER_HOUR, "sqs"),
        ("DynamoDB", "claims written", "assumed", events, "dynamodb_write"),
        ("DynamoDB", "claims read", "assumed", events - load.files_per_hour, "dynamodb_read"),
        ("Lambda", "GB-seconds", "assumed", seconds * FUNCTION_GB, "lambda_gb_second"),
        ("Lambda", "calls", "assumed", calls, "lambda_call"),
        # With one set of dimensions, each metric of the catalogue is one metric on the bill.
        ("CloudWatch", "metrics", "counted", len(CATALOGUE), "cloudwatch_metric"),
        ("CloudWatch", "alarms", "assumed", ALARMS, "cloudwatch_alarm"),
        ("CloudWatch", "dashboards", "assumed", 1, "cloudwatch_dashboard"),
        ("CloudWatch", "PutMetricData", "assumed", triggers + calls, "cloudwatch_request"),
    )
    for service, item, basis, quantity, price in items:
        yield CostLine(service, item, basis, quantity, PRICES[price])

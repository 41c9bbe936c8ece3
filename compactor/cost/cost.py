"""Estimates the cost of a load at list prices, item by item. No I/O."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compactor.cost import request_counts
from compactor.cost.prices import HOUR_SECONDS, PRICES, TERABYTE, HourlyCost, JobSize, Price
from compactor.cost.request_counts import Requests
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import planned_files
from compactor.telemetry.metrics import CATALOGUE

REFERENCE_RATIO = 0.24  # Parquet bytes per input byte of the events that the benchmark uses
NOT_COUNTED = "storage, logs, requests of producers and readers, KMS, failed attempts, free tiers and discounts"

Basis = Literal["given", "counted", "assumed"]
"""Where a quantity comes from: options, the code (tests hold the two together), or judgement without a measurement."""

# Assumed, not measured. The sealer and the control plane run every minute; the builder runs once per batch of events.
FUNCTION_GB = 1.0  # of the largest function
ALARMS = 14
_FILES_PER_BUILD = 500
_BUILD_SECONDS, _SEAL_SECONDS, _CONTROL_SECONDS = 3.0, 2.0, 2.0
# S3 requests of a call. Each function reads the settings and the summaries of 64 commits.
_OF_A_BUILD, _OF_A_SEAL, _OF_A_CHECK = Requests(gets=67, puts=5), Requests(gets=70, puts=10), Requests(gets=69, puts=3)
_REPEATED_SHARE = 0.01  # of the events, sent twice by S3
_IDLE_POLLS_PER_HOUR = 5 * 3600 / 20  # of the queue by Lambda's five pollers, 20 s each


@dataclass(frozen=True, slots=True)
class Load:
    """The input."""

    files_per_hour: float  # files per hour, as given
    file_bytes: int  # the stored size of a file

    @property
    def bytes_per_hour(self) -> float:
        return self.files_per_hour * self.file_bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """How the settings divide the work."""

    engine: EngineName
    target_manifest_bytes: int  # the size of the files that make up a manifest
    target_file_bytes: int  # the size of an output file
    max_wait_seconds: float  # the longest time a file waits for its manifest to fill
    trigger_interval_seconds: float  # the time between two micro-batches
    ratio: float = REFERENCE_RATIO  # Parquet bytes per input byte

    def manifests_per_hour(self, load: Load) -> float:
        """Full manifests; under a light load, those sealed by age, but no more than there are files."""
        by_age = min(load.files_per_hour, HOUR_SECONDS / self.max_wait_seconds)
        return max(load.bytes_per_hour / self.target_manifest_bytes, by_age)


@dataclass(frozen=True, slots=True)
class CostLine(HourlyCost):
    """One item of an estimate."""

    service: str
    item: str
    basis: Basis
    quantity: float  # the quantity in units of the price, per hour, or per month where the price is monthly
    price: Price

    @property
    def dollars_per_hour(self) -> float:
        return self.price.dollars_per_hour(self.quantity)


@dataclass(frozen=True, slots=True)
class Estimate(HourlyCost):
    """The cost of a load."""

    load: Load  # the input
    job: JobSize  # the workers
    shape: Shape  # how the work is divided
    manifests_per_hour: float  # manifests that the load makes in an hour
    outputs_per_manifest: int  # Parquet files of each manifest
    lines: tuple[CostLine, ...]  # the items

    @property
    def dollars_per_hour(self) -> float:
        return sum(line.dollars_per_hour for line in self.lines)

    @property
    def dollars_per_terabyte(self) -> float:
        return self.dollars_per_hour / (self.load.bytes_per_hour / TERABYTE)


def estimate(load: Load, job: JobSize, shape: Shape) -> Estimate:
    """Estimate the cost of a steady load, which is not empty, with the job up around the clock and assumed enough."""
    manifests = shape.manifests_per_hour(load)
    outputs = planned_files(round(load.bytes_per_hour / manifests), shape.ratio, shape.target_file_bytes)
    builds, triggers = load.files_per_hour / _FILES_PER_BUILD, HOUR_SECONDS / shape.trigger_interval_seconds
    events, calls = load.files_per_hour * (1 + _REPEATED_SHARE), builds + 2 * 60
    call_seconds = builds * _BUILD_SECONDS + 60 * (_SEAL_SECONDS + _CONTROL_SECONDS)
    one_pass = request_counts.of_inspected_file(load.file_bytes) * load.files_per_hour
    of_either_engine = request_counts.of_manifest(outputs) * manifests + one_pass + request_counts.OF_HEARTBEATS
    lines = (
        CostLine("Glue", "DPU-hours", "given", job.dpu, job.price),
        *_s3("compactor", "counted", of_either_engine),
        *_s3(*_of_engine(load, shape, manifests, outputs)),
        *_s3("stream", "assumed", request_counts.OF_TRIGGER * triggers),
        *_s3("functions", "assumed", _OF_A_BUILD * builds + (_OF_A_SEAL + _OF_A_CHECK) * 60),
        # S3 sends events one by one; Lambda receives and deletes them in tens.
        CostLine("SQS", "requests", "assumed", events * 1.2 + _IDLE_POLLS_PER_HOUR, PRICES["sqs"]),
        CostLine("DynamoDB", "claims written", "assumed", events, PRICES["dynamodb_write"]),
        CostLine("DynamoDB", "claims read", "assumed", events - load.files_per_hour, PRICES["dynamodb_read"]),
        CostLine("Lambda", "GB-seconds", "assumed", call_seconds * FUNCTION_GB, PRICES["lambda_gb_second"]),
        CostLine("Lambda", "calls", "assumed", calls, PRICES["lambda_call"]),
        # With one set of dimensions, each metric of the catalogue is one metric on the bill.
        CostLine("CloudWatch", "metrics", "counted", len(CATALOGUE), PRICES["cloudwatch_metric"]),
        CostLine("CloudWatch", "alarms", "assumed", ALARMS, PRICES["cloudwatch_alarm"]),
        CostLine("CloudWatch", "dashboards", "assumed", 1, PRICES["cloudwatch_dashboard"]),
        CostLine("CloudWatch", "PutMetricData", "assumed", triggers + calls, PRICES["cloudwatch_request"]),
    )
    return Estimate(load, job, shape, manifests, outputs, lines)


def _of_engine(load: Load, shape: Shape, manifests: float, outputs: int) -> tuple[str, Basis, Requests]:
    """Further requests of this engine."""
    if shape.engine == "native":
        output_bytes = math.ceil(load.bytes_per_hour / manifests * shape.ratio / outputs)
        return "native", "counted", request_counts.of_streamed_output(output_bytes) * (outputs * manifests)
    return "Spark", "assumed", request_counts.of_conversion(manifests, outputs * manifests, load.files_per_hour)


def _s3(who: str, basis: Basis, requests: Requests) -> Iterator[CostLine]:
    if requests.gets:  # the native engine sends none of its own
        yield CostLine("S3", f"GET, {who}", basis, requests.gets, PRICES["s3_get"])
    yield CostLine("S3", f"PUT, {who}", basis, requests.puts, PRICES["s3_put"])

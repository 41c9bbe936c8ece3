"""Estimates the cost of a load at list prices, item by item. No I/O."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compactor.cost import request_counts
from compactor.cost.deployment import Deployment, builds_per_hour, extra_lines, kept_lines, nat_line
from compactor.cost.lines import Basis, CostLine, Load
from compactor.cost.price_list import Price
from compactor.cost.prices import HOUR_SECONDS, PRICES, TERABYTE, HourlyCost, JobSize
from compactor.cost.request_counts import Requests
from compactor.cost.topic_cost import TopicInput, producer_lines, reader_lines
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import planned_files
from compactor.telemetry.metrics import (
    CATALOGUE,
    ONLY_OF_KINESIS,
    ONLY_OF_PARTITIONS,
    ONLY_OF_STREAMS,
    ONLY_OF_TOPICS,
)

__all__ = ["Basis", "CostLine", "Estimate", "Load", "Shape", "estimate"]

REFERENCE_RATIO = 0.24  # Parquet bytes per input byte of the events that the benchmark uses
NOT_COUNTED = "state and logs kept, requests of producers and readers, failed attempts, free tiers and discounts"

# Assumed, not measured. The sealer and the control plane run every minute; the builder runs once per batch of events.
# Glue's own metrics are off, and cost nothing.
FUNCTION_GB = 1.0  # of the largest function
ALARMS = 17
ALARMS_OF_A_SHARD = 4
_BUILD_SECONDS, _SEAL_SECONDS, _CONTROL_SECONDS = 1.0, 2.0, 2.0
_EVENT_SECONDS = 0.004  # of a build for each event
# S3 requests of a call. Each function reads the settings and the summaries of 64 commits.
_OF_A_BUILD, _OF_A_SEAL, _OF_A_CHECK = Requests(gets=67, puts=5), Requests(gets=70, puts=10), Requests(gets=69, puts=3)
_REPEATED_SHARE = 0.01  # of the events, sent twice by S3
_IDLE_POLLS_PER_HOUR = 5 * 3600 / 20  # of the queue by Lambda's five pollers, 20 s each


@dataclass(frozen=True, slots=True)
class Shape:
    """How the settings divide the work."""

    engine: EngineName
    target_manifest_bytes: int  # the size of the files that make up a manifest
    target_file_bytes: int  # the size of an output file
    max_wait_seconds: float  # the longest time a file waits for its manifest to fill
    trigger_interval_seconds: float  # the time between two micro-batches
    ratio: float = REFERENCE_RATIO  # Parquet bytes per input byte
    shards: int = 1  # how many jobs share the manifests
    in_place: bool = False  # whether output files are written where a table lists them, without a copy

    @property
    def triggers_per_hour(self) -> float:
        """The micro-batches of all jobs."""
        return self.shards * HOUR_SECONDS / self.trigger_interval_seconds

    def manifests_per_hour(self, load: Load) -> float:
        """Full manifests; under a light load, those sealed by age, but no more than there are files."""
        by_age = min(load.files_per_hour, HOUR_SECONDS / self.max_wait_seconds)
        return max(load.bytes_per_hour / self.target_manifest_bytes, by_age)


@dataclass(frozen=True, slots=True)
class Estimate(HourlyCost):
    """The cost of a load."""

    load: Load  # the input
    job: JobSize  # the workers
    shape: Shape  # how the work is divided
    manifests_per_hour: float  # manifests that the load makes in an hour
    outputs_per_manifest: int  # Parquet files of each manifest
    lines: tuple[CostLine, ...]  # the items
    kept: tuple[CostLine, ...]  # what is kept, once it is as old as it gets; not in the totals
    nat: CostLine  # what a NAT gateway would add; not in the totals
    producers: tuple[CostLine, ...] = ()  # what the topic costs that the load comes from; not in the totals

    @property
    def dollars_per_hour(self) -> float:
        return sum(line.dollars_per_hour for line in self.lines)

    @property
    def dollars_per_terabyte(self) -> float:
        return self.dollars_per_hour / (self.load.bytes_per_hour / TERABYTE)


def estimate(
    load: Load,
    job: JobSize,
    shape: Shape,
    deployment: Deployment = Deployment(),  # noqa: B008 - it is frozen
    prices: Mapping[str, Price] = PRICES,
    topic: TopicInput | None = None,
) -> Estimate:
    """Estimate the cost of a steady load, which is not empty, with the job up around the clock and assumed enough.

    A load from a topic is planned in ranges: there are no input files, and no events of them.
    """
    if topic is not None:
        load = Load(HOUR_SECONDS / shape.max_wait_seconds, max(1, _share(load, shape)))
    manifests = shape.manifests_per_hour(load)
    outputs = planned_files(round(load.bytes_per_hour / manifests), shape.ratio, shape.target_file_bytes)
    lines = (
        CostLine("Glue", "DPU-hours", "given", job.dpu, job.price_in(prices)),
        *(reader_lines(topic, prices) if topic else ()),
        *(s3 := [*_s3_lines(load, shape, manifests, outputs, prices, has_files=topic is None)]),
        *_service_lines(load, shape, prices, has_files=topic is None),
        *extra_lines(_events(load) if topic is None else 0, sum(line.quantity for line in s3), deployment, prices),
    )
    kept = tuple(kept_lines(load, shape.ratio, deployment, prices, has_files=topic is None))
    producers = tuple(producer_lines(topic, prices)) if topic else ()
    return Estimate(load, job, shape, manifests, outputs, lines, kept, nat_line(load, shape.ratio, prices), producers)


def _share(load: Load, shape: Shape) -> int:
    """What is written to a topic in the time that a record waits at most."""
    return round(load.bytes_per_hour * shape.max_wait_seconds / HOUR_SECONDS)


def _events(load: Load) -> float:
    return load.files_per_hour * (1 + _REPEATED_SHARE)


def _s3_lines(
    load: Load, shape: Shape, manifests: float, outputs: int, prices: Mapping[str, Price], *, has_files: bool
) -> Iterator[CostLine]:
    one_pass = request_counts.of_inspected_file(load.file_bytes) * (load.files_per_hour if has_files else 0)
    beats = request_counts.OF_HEARTBEATS * shape.shards + request_counts.of_shards(shape.shards)
    of_one = request_counts.of_manifest_in_place(outputs) if shape.in_place else request_counts.of_manifest(outputs)
    of_either_engine = of_one * manifests + one_pass + beats
    builds, triggers = builds_per_hour(_events(load) if has_files else 0), shape.triggers_per_hour
    sets: tuple[tuple[str, Basis, Requests], ...] = (
        ("compactor", "counted", of_either_engine),
        _of_engine(load, shape, manifests, outputs),
        ("stream", "assumed", request_counts.OF_TRIGGER * triggers),
        ("functions", "assumed", _OF_A_BUILD * builds + (_OF_A_SEAL + _OF_A_CHECK * shape.shards) * 60),
    )
    for who, basis, requests in sets:
        yield from _s3(who, basis, requests, prices)


def _service_lines(load: Load, shape: Shape, prices: Mapping[str, Price], *, has_files: bool) -> Iterator[CostLine]:
    events, triggers = _events(load) if has_files else 0.0, shape.triggers_per_hour
    builds = builds_per_hour(events)
    calls = builds + 2 * 60
    seconds = builds * _BUILD_SECONDS + events * _EVENT_SECONDS + 60 * (_SEAL_SECONDS + _CONTROL_SECONDS * shape.shards)
    # S3 sends events one by one; Lambda receives and deletes them in tens.
    if has_files:
        yield CostLine("SQS", "requests", "assumed", events * 1.2 + _IDLE_POLLS_PER_HOUR, prices["sqs"])
        yield CostLine("DynamoDB", "claims written", "assumed", events, prices["dynamodb_write"])
        yield CostLine("DynamoDB", "claims read", "assumed", events - load.files_per_hour, prices["dynamodb_read"])
    yield CostLine("Lambda", "GB-seconds", "assumed", seconds * FUNCTION_GB, prices["lambda_gb_second"])
    yield CostLine("Lambda", "calls", "assumed", calls, prices["lambda_call"])
    # With one set of dimensions, each metric of the catalogue is one metric on the bill.
    yield CostLine(
        "CloudWatch",
        "metrics",
        "counted",
        len(CATALOGUE.keys() - ONLY_OF_STREAMS - ONLY_OF_PARTITIONS - ONLY_OF_TOPICS - ONLY_OF_KINESIS),
        prices["cloudwatch_metric"],
    )
    shards = shape.shards if shape.shards > 1 else 0
    if shards:
        yield CostLine(
            "CloudWatch",
            "shard metrics",
            "assumed",
            len(CATALOGUE.keys() - ONLY_OF_PARTITIONS - ONLY_OF_TOPICS - ONLY_OF_KINESIS) * shards,
            prices["cloudwatch_metric"],
        )
    alarms = ALARMS + ALARMS_OF_A_SHARD * shards
    yield CostLine("CloudWatch", "alarms", "assumed", alarms, prices["cloudwatch_alarm"])
    yield CostLine("CloudWatch", "dashboards", "assumed", 1, prices["cloudwatch_dashboard"])
    yield CostLine("CloudWatch", "PutMetricData", "assumed", triggers + calls, prices["cloudwatch_request"])


def _of_engine(load: Load, shape: Shape, manifests: float, outputs: int) -> tuple[str, Basis, Requests]:
    """Further requests of this engine."""
    if shape.engine == "native":
        output_bytes = math.ceil(load.bytes_per_hour / manifests * shape.ratio / outputs)
        return "native", "counted", request_counts.of_streamed_output(output_bytes) * (outputs * manifests)
    return "Spark", "assumed", request_counts.of_conversion(manifests, outputs * manifests, load.files_per_hour)


def _s3(who: str, basis: Basis, requests: Requests, prices: Mapping[str, Price]) -> Iterator[CostLine]:
    if requests.gets:  # the native engine sends none of its own
        yield CostLine("S3", f"GET, {who}", basis, requests.gets, prices["s3_get"])
    yield CostLine("S3", f"PUT, {who}", basis, requests.puts, prices["s3_put"])

"""What a load costs by list prices: each service's quantities and dollars. An estimate, no I/O."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compactor.cost import request_counts
from compactor.cost.prices import HOURS_A_MONTH, PRICES, TERABYTE, JobSize, Price
from compactor.cost.request_counts import Requests
from compactor.engines.engine import EngineName
from compactor.ledger.sizing import planned_files
from compactor.telemetry.metrics import CATALOGUE

REFERENCE_RATIO = 0.24
"""Parquet bytes per input byte of the events that the benchmark uses."""

_HOUR_SECONDS = 3600.0
# Each of them reads the settings and the summaries of 64 commits.
_OF_A_BUILD = Requests(gets=67, puts=5)
_OF_A_SEAL = Requests(gets=70, puts=10)
_OF_A_LOOK = Requests(gets=69, puts=3)

Basis = Literal["given", "counted", "assumed"]
"""Where a quantity comes from: from the caller, from the code (tests hold the two together), or from judgement."""


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in.

    Attributes:
        files_per_hour: Input files.
        file_bytes: The stored length of each.
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
    """How the work is cut, as the settings say it.

    Attributes:
        engine: What turns lines into Parquet.
        ratio: Parquet bytes per input byte.
    """

    engine: EngineName
    target_manifest_bytes: int
    target_file_bytes: int
    max_wait_seconds: float
    trigger_interval_seconds: float
    ratio: float = REFERENCE_RATIO

    def manifests_per_hour(self, load: Load) -> float:
        """Full ones; under a light load those that waited long enough, as long as there is a file for each."""
        by_age = min(load.files_per_hour, _HOUR_SECONDS / self.max_wait_seconds)
        return max(load.bytes_per_hour / self.target_manifest_bytes, by_age)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What nobody has counted yet; each shows up as `assumed`.

    Attributes:
        files_per_build: Events that one call of the builder gets.
        build_seconds: How long such a call takes.
        seal_seconds: How long a call of the sealer takes; it runs every minute.
        control_seconds: How long a call of the control plane takes; it runs every minute.
        function_gb: Memory of the largest function.
        requests_per_build: To S3, of one call of the builder.
        requests_per_seal: To S3, of one call of the sealer.
        requests_per_look: To S3, of one call of the control plane.
        repeated_share: Of the events, those that S3 sends twice.
        idle_polls_per_hour: Of the queue by Lambda's five pollers, each for 20 s.
        alarms: In the deployment.
    """

    files_per_build: int = 500
    build_seconds: float = 3.0
    seal_seconds: float = 2.0
    control_seconds: float = 2.0
    function_gb: float = 1.0
    requests_per_build: Requests = _OF_A_BUILD
    requests_per_seal: Requests = _OF_A_SEAL
    requests_per_look: Requests = _OF_A_LOOK
    repeated_share: float = 0.01
    idle_polls_per_hour: float = 5 * _HOUR_SECONDS / 20
    alarms: int = 11


@dataclass(frozen=True, slots=True)
class CostLine:
    """One item of an estimate.

    Attributes:
        service: AWS's name.
        item: What is paid for.
        basis: Where the quantity comes from.
        quantity: In units of the price: an hour, or a month where the price is monthly.
        price: What a unit costs.
    """

    service: str
    item: str
    basis: Basis
    quantity: float
    price: Price

    @property
    def dollars_per_hour(self) -> float:
        return self.price.of(self.quantity) / (HOURS_A_MONTH if self.price.is_monthly else 1)

    @property
    def dollars_per_month(self) -> float:
        return self.dollars_per_hour * HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a load costs.

    Attributes:
        manifests_per_hour: How many the load makes.
        outputs_per_manifest: Parquet files of each.
        lines: Item by item.
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
    def dollars_per_month(self) -> float:
        return self.dollars_per_hour * HOURS_A_MONTH

    @property
    def dollars_per_terabyte(self) -> float:
        return self.dollars_per_hour / self.load.terabytes_per_hour


def estimate(load: Load, job: JobSize, shape: Shape, assumptions: Assumptions | None = None) -> Estimate:
    """What a steady load costs, with the job up around the clock.

    Args:
        load: What comes in; more than nothing.
        job: What works on it. Whether it is enough is not asked here.
        shape: How the work is cut.
        assumptions: What nobody has counted.
    """
    assumed = assumptions or Assumptions()
    manifests = shape.manifests_per_hour(load)
    outputs = planned_files(round(load.bytes_per_hour / manifests), shape.ratio, shape.target_file_bytes)
    triggers = _HOUR_SECONDS / shape.trigger_interval_seconds
    builds = load.files_per_hour / assumed.files_per_build
    lines = (
        CostLine("Glue", "DPU-hours", "given", job.dpu, job.price),
        *_s3(
            ("compactor", "counted", _of_compactor(load, manifests, outputs)),
            _of_engine(load, shape, manifests, outputs),
            ("stream", "assumed", request_counts.of_trigger() * triggers),
            ("functions", "assumed", _of_functions(builds, assumed)),
        ),
        *_queue_and_claims(load, assumed),
        *_functions(builds, assumed),
        *_cloudwatch(triggers, builds, assumed),
    )
    return Estimate(load, job, manifests, outputs, lines)


_Asked = tuple[str, Basis, Requests]
"""Who asks S3, where the number comes from, and for how much an hour."""


def _of_compactor(load: Load, manifests: float, outputs: int) -> Requests:
    """What it takes with either engine, the one pass over the input included."""
    return (
        request_counts.of_manifest(outputs) * manifests
        + request_counts.of_inspected_file(load.file_bytes) * load.files_per_hour
        + request_counts.of_heartbeat()
    )


def _of_engine(load: Load, shape: Shape, manifests: float, outputs: int) -> _Asked:
    """What comes on top of that with this engine."""
    if shape.engine == "native":
        output_bytes = math.ceil(load.bytes_per_hour / manifests * shape.ratio / outputs)
        return "native", "counted", request_counts.of_streamed_output(output_bytes) * (outputs * manifests)
    converted = request_counts.of_converted_file() * load.files_per_hour
    return "Spark", "assumed", request_counts.of_conversion(outputs) * manifests + converted


def _of_functions(builds: float, assumed: Assumptions) -> Requests:
    each_minute = assumed.requests_per_seal + assumed.requests_per_look
    return assumed.requests_per_build * builds + each_minute * 60


def _s3(*asked: _Asked) -> Iterator[CostLine]:
    for who, basis, requests in asked:
        if requests.gets:  # the native engine has none of its own
            yield CostLine("S3", f"GET, {who}", basis, requests.gets, PRICES["s3_get"])
        yield CostLine("S3", f"PUT, {who}", basis, requests.puts, PRICES["s3_put"])


def _queue_and_claims(load: Load, assumed: Assumptions) -> Iterator[CostLine]:
    events = load.files_per_hour * (1 + assumed.repeated_share)
    # Sent one by one by S3; received and deleted by Lambda in tens.
    requests = events * 1.2 + assumed.idle_polls_per_hour
    yield CostLine("SQS", "requests", "assumed", requests, PRICES["sqs"])
    yield CostLine("DynamoDB", "claims written", "assumed", events, PRICES["dynamodb_write"])
    yield CostLine("DynamoDB", "claims read", "assumed", events - load.files_per_hour, PRICES["dynamodb_read"])


def _functions(builds: float, assumed: Assumptions) -> Iterator[CostLine]:
    seconds = builds * assumed.build_seconds + 60 * (assumed.seal_seconds + assumed.control_seconds)
    yield CostLine("Lambda", "GB-seconds", "assumed", seconds * assumed.function_gb, PRICES["lambda_gb_second"])
    yield CostLine("Lambda", "calls", "assumed", builds + 2 * 60, PRICES["lambda_call"])


def _cloudwatch(triggers: float, builds: float, assumed: Assumptions) -> Iterator[CostLine]:
    # One set of dimensions, so a metric of the catalogue is one metric on the bill.
    monthly: tuple[tuple[str, Basis, int, str], ...] = (
        ("metrics", "counted", len(CATALOGUE), "cloudwatch_metric"),
        ("alarms", "assumed", assumed.alarms, "cloudwatch_alarm"),
        ("dashboards", "assumed", 1, "cloudwatch_dashboard"),
    )
    for item, basis, number, price in monthly:
        yield CostLine("CloudWatch", item, basis, number, PRICES[price])
    requests = triggers + builds + 2 * 60
    yield CostLine("CloudWatch", "PutMetricData", "assumed", requests, PRICES["cloudwatch_request"])

"""Estimates the cost of a load at list prices, item by item. No I/O."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compactor.core.results import as_document
from compactor.cost.measured_cost import MeasuredCost, StreamCost
from compactor.cost.prices import (
    DOLLARS,
    GIB,
    HOUR_SECONDS,
    PRICES,
    TERABYTE,
    Basis,
    CostLine,
    HourlyCost,
    Item,
    Load,
    Price,
    PricedJob,
    priced,
)
from compactor.cost.topic_cost import TopicInput, producer_lines, reader_items
from compactor.cost.worker_needs import Needed
from compactor.engines.engine import EngineName
from compactor.job.shards import REFRESH_SECONDS
from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS, IDLE_TIMES
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import planned_files
from compactor.ledger.sizing_history import KEPT_SECONDS
from compactor.ndjson.files.object_reading import RANGE_BYTES
from compactor.settings.settings import CLAIM_DAYS
from compactor.telemetry.metrics import CATALOGUE, ONLY_OF_LOGS, ONLY_OF_PARTITIONS, ONLY_OF_STREAMS

STREAMED_PART_BYTES = 16 * 1024 * 1024  # per part of a multipart upload; a test checks it against the writer


@dataclass(frozen=True, slots=True)
class Requests:
    """S3 requests by price; DELETE is free."""

    gets: float = 0  # GET and HEAD
    puts: float = 0  # PUT, COPY, POST and LIST

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(self.gets + other.gets, self.puts + other.puts)

    def __mul__(self, times: float) -> "Requests":
        return Requests(self.gets * times, self.puts * times)


def of_manifest(staged: int) -> Requests:
    """One manifest from delivery to archive, without its engine's requests. Counted.

    The first attempt succeeds, and one read gets the whole footer of each staged file, of rows or of rejects.
    """
    stats, reads, footers, copies = 4 + staged, 3, staged, 1 + staged
    records, listings, summaries = 7, 3, 1
    # Before copying, boto3 asks for the source's size.
    return Requests(gets=stats + reads + footers + copies, puts=records + listings + summaries + copies)


def of_manifest_in_place(outputs: int, rejects: int = 0) -> Requests:
    """The same if a table lists the row files where they were written, without the table's commits. Counted.

    Each staged file is looked up in its final place, and the manifest's folder is checked for other attempts'
    leftovers.
    """
    staged = outputs + rejects
    copied = Requests(gets=1, puts=1) * outputs
    before = of_manifest(staged)
    return Requests(gets=before.gets + staged - copied.gets, puts=before.puts + 1 - copied.puts)


def of_inspected_file(file_bytes: int) -> Requests:
    """One pass over a file with a known ETag, by either engine. Counted.

    The native engine needs no more. The Spark engine inspects the file this way, if Spark can then read it unchanged.
    """
    ranges = max(1, math.ceil(file_bytes / RANGE_BYTES))
    return Requests(gets=ranges + (file_bytes >= RANGE_BYTES))  # a long file's size is requested first


def of_streamed_output(size_bytes: int) -> Requests:
    """One output of the native engine: a PUT, or a multipart upload with its start and end. Counted."""
    parts = math.ceil(size_bytes / STREAMED_PART_BYTES)
    return Requests(puts=1 if parts <= 1 else parts + 2)


OF_HEARTBEAT = Requests(gets=2, puts=1)
"""One heartbeat. Counted."""

_BEATS_OF_A_MANIFEST = (
    3  # in addition to those of an idle run: one at its start, and some while it is in flight. Assumed
)


def of_heartbeats(manifests: float, shards: int) -> Requests:
    """An hour of runs, which rest between manifests unless they are shards."""
    often = HOUR_SECONDS / HEARTBEAT_INTERVAL_SECONDS
    if shards > 1:
        return OF_HEARTBEAT * often * shards
    return OF_HEARTBEAT * min(often, often / IDLE_TIMES + _BEATS_OF_A_MANIFEST * manifests)


def of_shards(shards: int) -> Requests:
    """An hour of several jobs watching each other: each lists and reads all heartbeats. Counted."""
    of_one = Requests(gets=shards, puts=1) * (HOUR_SECONDS / REFRESH_SECONDS)
    return of_one * shards if shards > 1 else Requests()


OF_TRIGGER = Requests(gets=20, puts=15)
"""One micro-batch of Spark without its manifests: listing the watched prefix, writing the checkpoint. Assumed."""

OF_LISTING = Requests(puts=1)
"""The same of a job without Spark, for up to 1,000 waiting manifests. Counted."""

_POLL_SECONDS = 20.0  # of the queue of new manifests
_UNTOLD_SECONDS = 300.0  # between listings without a new manifest, for a job with such a queue; a test compares both


def of_conversion(manifests: float, outputs: float, files: float) -> Requests:
    """Manifests in the Spark engine and S3A, with all outputs and input files. From their sources.

    An output is a multipart upload of three parts, renamed (COPY) when its task commits, with look-ups in between. The
    driver then reads its footer (HEAD, GET). A file is looked up (HEAD), listed as a folder (LIST, HEAD), opened
    (HEAD), read (GET), and checked for a replacement at the end (HEAD).
    """
    of_manifests, of_outputs = Requests(gets=10, puts=8) * manifests, Requests(gets=10, puts=9) * outputs
    return of_manifests + of_outputs + Requests(gets=5, puts=1) * files


POLLERS = 5
"""Lambda's queue pollers: it "starts processing five batches at a time with five concurrent invocations" [Lambda
developer guide, services-sqs-scaling]. Each fills its own batch."""

WINDOW_SECONDS = 15.0  # BuilderWindowSeconds in the template's parameters
BATCH_MESSAGES = 2000  # BuilderBatchMessages in production
CLAIM_BYTES = 400  # a claim: key, manifest and times, with the 100 bytes added by DynamoDB. Assumed
_KMS_SHARE = 0.01  # of S3's requests: bucket keys spare "up to 99 percent" [S3 user guide, bucket-key]
_DATA_KEY_SECONDS = 300.0  # how long SQS and SNS reuse a data key [SQS developer guide, sqs-key-management]
_KEY_CALLS = 2 * 3 + 3  # R = B / D * (2 * P + C) [the same page], three queues with a producer and a consumer each


@dataclass(frozen=True, slots=True)
class Deployment:
    """How the load is deployed."""

    input_days: float = 30  # retention of input in days
    output_days: float = 365  # retention of output in days
    has_key: bool = False  # whether KmsKey is set
    uses_event_bridge: bool = False  # whether the input bucket already exists, or is in a different account
    window_seconds: float = WINDOW_SECONDS  # how long the builder waits to fill a batch
    only_alarm_metrics: bool = False  # whether metrics.detail is "alarms", without a dashboard
    has_manifest_queue: bool = False  # whether stream.queue_url is set


SMALL_WINDOW_SECONDS, SMALL_WAIT_SECONDS = 120.0, 300.0
"""What a small stream should have as BuilderWindowSeconds and builder.max_wait_seconds."""


def builds_per_hour(events_per_hour: float, window_seconds: float = WINDOW_SECONDS) -> float:
    """Builder calls: one per window of each poller, more if batches are full, none without events."""
    by_window = min(events_per_hour, POLLERS * HOUR_SECONDS / window_seconds)
    return max(by_window, events_per_hour / BATCH_MESSAGES)


def _kept(load: Load, ratio: float, deployment: Deployment, *, has_files: bool) -> Iterator[Item]:
    """The data kept once input and output have reached their full age. A topic's input is kept by its cluster."""
    day_gib = load.bytes_per_hour * 24 / GIB
    claims_gib = load.files_per_hour * 24 * CLAIM_DAYS * CLAIM_BYTES / GIB
    if has_files:
        yield "S3", f"input of {deployment.input_days:g} days", "given", day_gib * deployment.input_days, "s3_storage"
    output_gib = day_gib * ratio * deployment.output_days
    yield "S3", f"output of {deployment.output_days:g} days", "given", output_gib, "s3_storage"
    if has_files:
        yield "DynamoDB", "claims kept", "assumed", claims_gib, "dynamodb_storage"
        yield "DynamoDB", "claims restorable", "assumed", claims_gib, "dynamodb_pitr"


def _extras(events: float, s3_requests: float, deployment: Deployment) -> Iterator[Item]:
    """The hourly cost of deployment options."""
    if deployment.uses_event_bridge:
        yield "EventBridge", "events of S3", "assumed", events, "eventbridge_event"
    if deployment.has_key:
        calls = s3_requests * _KMS_SHARE + _KEY_CALLS * HOUR_SECONDS / _DATA_KEY_SECONDS
        yield "KMS", "key", "given", 1, "kms_key"
        yield "KMS", "requests", "assumed", calls, "kms_request"


REFERENCE_RATIO = 0.24  # Parquet bytes per input byte for the benchmark's events
NOT_COUNTED = (
    "stored state, requests of producers and readers, failed attempts, CloudTrail data events, GuardDuty, free tiers "
    "and discounts"
)

# Assumed, not measured. The sealer and the control plane run every minute; the builder runs once per batch of events.
# A sealer without work ends sooner.
# Glue's own metrics are off, and cost nothing.
FUNCTION_GB, CONTROL_GB = 1.0, 0.5  # memory of builder and sealer, and of the control plane
ALARMS = 16
ALARMS_OF_A_SHARD = 4
_BUILD_SECONDS, _SEAL_SECONDS, _IDLE_SEAL_SECONDS, _CONTROL_SECONDS = 1.0, 2.0, 0.5, 2.0
_EVENT_SECONDS = 0.004  # of a build, per event
# S3 requests per call, and more for each manifest. Each function reads the settings. A pending part is read in each
# minute of its wait, and when it is sealed. Counted, but for those of the control plane.
_OF_A_BUILD, _OF_A_SEAL, _OF_A_CHECK = Requests(gets=1, puts=2), Requests(gets=1, puts=1), Requests(gets=5, puts=3)
_OF_A_MANIFEST, _GETS_OF_A_PART = Requests(puts=5), 3
# Each builder and the sealer list the summaries of the latest commits every 5 minutes, the control plane in each call.
# They read those that are new to them.
_READERS = POLLERS + 2
_READS_PER_HOUR = HOUR_SECONDS / KEPT_SECONDS
_LOG_BYTES = 1000  # of a call with Lambda's own three lines, a micro-batch or a manifest
_REPEATED_SHARE = 0.01  # share of events that S3 sends twice
_IDLE_POLLS_PER_HOUR = 5 * 3600 / 20  # of the queue, by Lambda's five pollers, 20 s each


@dataclass(frozen=True, slots=True)
class Shape:
    """How the settings divide the work."""

    engine: EngineName
    target_manifest_bytes: int  # target size of a manifest's files
    target_file_bytes: int  # target size of an output file
    max_wait_seconds: float  # the longest wait of a file for its manifest to fill
    trigger_interval_seconds: float  # time between micro-batches
    ratio: float = REFERENCE_RATIO  # Parquet bytes per input byte
    shards: int = 1  # how many jobs share the manifests
    in_place: bool = False  # whether output files are written where a table lists them, without a copy
    lists: bool = False  # whether a job without Spark lists the manifests

    @property
    def triggers_per_hour(self) -> float:
        """The micro-batches of all jobs."""
        return self.shards * HOUR_SECONDS / self.trigger_interval_seconds

    def manifests_per_hour(self, load: Load) -> float:
        """Full manifests; under a light load, those sealed by age, but no more than there are files."""
        by_age = min(load.files_per_hour, HOUR_SECONDS / self.max_wait_seconds)
        return max(load.bytes_per_hour / self.target_manifest_bytes, by_age)


@as_document(shows=(*DOLLARS, "dollars_per_terabyte"))
@dataclass(frozen=True, slots=True)
class Estimate(HourlyCost):
    """The cost of a load, at list prices."""

    load: Load  # the input
    job: PricedJob  # the workers
    shape: Shape  # how the work is divided
    manifests_per_hour: float  # manifests per hour under the load
    outputs_per_manifest: int  # Parquet files per manifest
    lines: tuple[CostLine, ...]  # the items
    kept: tuple[CostLine, ...]  # stored data once it has reached its full age; not in the totals
    nat: CostLine  # the additional cost of a NAT gateway; not in the totals
    # The cost of --topic's topic for its producers and all readers; not in the totals
    producers: tuple[CostLine, ...] = ()

    @property
    def dollars_per_hour(self) -> float:
        return sum(line.dollars_per_hour for line in self.lines)

    @property
    def dollars_per_terabyte(self) -> float:
        return self.dollars_per_hour / (self.load.bytes_per_hour / TERABYTE)


@as_document(inlines={"estimate": ()}, shows=("compared", "not_counted"))
@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """The cost of a load, at list prices."""

    estimate: Estimate
    region: str  # the requested region
    has_prices_of_region: bool  # whether its prices are known; if not, those of us-east-1 are used
    prices: Mapping[str, Price]  # the price table, by name
    jobs: int = 1  # number of jobs that share these workers; 1 unless streams have their own
    needed: Needed | None = None  # workers needed for the load; null without a benchmark

    @property
    def compared(self) -> PricedJob:
        """A common job for comparison."""
        return self.estimate.job.compared

    @property
    def not_counted(self) -> list[str]:
        """The items missing from the estimate, in words."""
        return NOT_COUNTED.split(", ")


@as_document(shows=("dollars",))
@dataclass(frozen=True, slots=True, kw_only=True)
class ActualCost:
    """What the latest commits, or with `--days` those of the last days, cost at list prices."""

    job: PricedJob  # workers that are assumed to have made the commits
    jobs: int  # number of jobs that have these workers together; 1 unless streams have their own
    region: str  # region whose prices were asked for
    has_prices_of_region: bool  # whether they are on file; if not, those of us-east-1 count
    measured: MeasuredCost | None  # what the workers cost; null without commits
    streams: Sequence[StreamCost] = ()  # share of each of several streams; empty without streams
    estimate: Estimate | None = None  # what the mean load of the days costs, all services; null without --days

    @property
    def dollars(self) -> float | None:
        """Cost of the days, all services; null without `--days`."""
        if self.estimate is None or self.measured is None:
            return None
        return self.estimate.dollars_per_hour * self.measured.elapsed_seconds / HOUR_SECONDS


def estimate(
    load: Load,
    job: PricedJob,
    shape: Shape,
    deployment: Deployment = Deployment(),
    prices: Mapping[str, Price] = PRICES,
    topic: TopicInput | None = None,
) -> Estimate:
    """Estimate the cost of a steady, non-empty load, assuming that the job runs continuously and suffices.

    A load from a topic is planned in ranges: there are no input files, and no events for them.
    """
    if topic is not None:
        load = Load(HOUR_SECONDS / shape.max_wait_seconds, max(1, _share(load, shape)))
    has_files = topic is None
    events = load.files_per_hour * (1 + _REPEATED_SHARE) if has_files else 0.0
    manifests = shape.manifests_per_hour(load)
    outputs = planned_files(round(load.bytes_per_hour / manifests), shape.ratio, shape.target_file_bytes)
    s3 = [*_s3(load, shape, deployment, manifests, outputs, events, has_files=has_files)]
    items: list[Item] = [
        *(reader_items(topic) if topic else ()),
        *s3,
        *_services(load, shape, deployment, manifests, events, has_files=has_files),
        *_extras(events, sum(quantity for _, _, _, quantity, _ in s3), deployment),
    ]
    # The additional cost of a NAT gateway for a job in a VPC without a gateway endpoint for S3
    nat: Item = "NAT", "GB", "counted", load.bytes_per_hour * (1 + shape.ratio) / GIB, "nat_gb"
    return Estimate(
        load=load,
        job=job,
        shape=shape,
        manifests_per_hour=manifests,
        outputs_per_manifest=outputs,
        lines=(*job.lines_in(prices), *priced(items, prices)),
        kept=priced(_kept(load, shape.ratio, deployment, has_files=has_files), prices),
        nat=priced([nat], prices)[0],
        producers=producer_lines(topic, prices) if topic else (),
    )


def _share(load: Load, shape: Shape) -> int:
    """The data written to a topic during a record's maximum wait."""
    return round(load.bytes_per_hour * shape.max_wait_seconds / HOUR_SECONDS)


def _s3(
    load: Load, shape: Shape, deployment: Deployment, manifests: float, outputs: int, events: float, *, has_files: bool
) -> Iterator[Item]:
    one_pass = of_inspected_file(load.file_bytes) * (load.files_per_hour if has_files else 0)
    beats = of_heartbeats(manifests, shape.shards) + of_shards(shape.shards)
    of_one = of_manifest_in_place(outputs) if shape.in_place else of_manifest(outputs)
    builds = builds_per_hour(events, deployment.window_seconds)
    reads = min(builds, POLLERS * _READS_PER_HOUR) + _READS_PER_HOUR
    functions = (
        _OF_A_BUILD * builds
        + (_OF_A_SEAL + _OF_A_CHECK * shape.shards) * 60
        + _OF_A_MANIFEST * (manifests if has_files else 0)
        + Requests(gets=builds * (_GETS_OF_A_PART + shape.max_wait_seconds / 60))
        + Requests(gets=min(RECENT_SLOTS * (reads + 60), _READERS * manifests), puts=reads)
    )
    sets: tuple[tuple[str, Basis, Requests], ...] = (
        ("compactor", "counted", of_one * manifests + one_pass + beats),
        _of_engine(load, shape, manifests, outputs),
        ("listing", "counted", OF_LISTING * _listings_per_hour(shape, deployment, manifests))
        if shape.lists
        else ("stream", "assumed", OF_TRIGGER * shape.triggers_per_hour),
        ("functions", "assumed", functions),
    )
    for who, basis, requests in sets:
        if requests.gets:  # the native engine sends none of its own
            yield "S3", f"GET, {who}", basis, requests.gets, "s3_get"
        yield "S3", f"PUT, {who}", basis, requests.puts, "s3_put"


def _listings_per_hour(shape: Shape, deployment: Deployment, manifests: float) -> float:
    if not deployment.has_manifest_queue or shape.shards > 1:
        return shape.triggers_per_hour
    return min(shape.triggers_per_hour, HOUR_SECONDS / _UNTOLD_SECONDS + 2 * manifests)  # one finds it, one no more


def _services(
    load: Load, shape: Shape, deployment: Deployment, manifests: float, events: float, *, has_files: bool
) -> Iterator[Item]:
    builds = builds_per_hour(events, deployment.window_seconds)
    calls = builds + 2 * 60
    sealing = min(60.0, manifests)  # calls of the sealer with work
    seals_seconds = sealing * _SEAL_SECONDS + (60 - sealing) * _IDLE_SEAL_SECONDS
    seconds = builds * _BUILD_SECONDS + events * _EVENT_SECONDS + seals_seconds
    # S3 sends events one by one; Lambda receives and deletes them in tens.
    if has_files:
        polls = HOUR_SECONDS / _POLL_SECONDS + 2 * manifests if deployment.has_manifest_queue else 0
        yield "SQS", "requests", "assumed", events * 1.2 + _IDLE_POLLS_PER_HOUR + polls, "sqs"
        yield "DynamoDB", "claims written", "assumed", events, "dynamodb_write"
        yield "DynamoDB", "claims read", "assumed", events - load.files_per_hour, "dynamodb_read"
    gb_seconds = seconds * FUNCTION_GB + 60 * _CONTROL_SECONDS * shape.shards * CONTROL_GB
    yield "Lambda", "GB-seconds", "assumed", gb_seconds, "lambda_gb_second"
    yield "Lambda", "calls", "assumed", calls, "lambda_call"
    # With one set of dimensions, each metric in the catalogue is one billed metric.
    of_all = CATALOGUE.keys() - ONLY_OF_PARTITIONS - ONLY_OF_LOGS
    if deployment.only_alarm_metrics:  # those that tell of a fault are sent in few hours, and billed by the hour
        of_all = {name for name in of_all if CATALOGUE[name].alarm in {"absence", "work"}}
    shards = shape.shards if shape.shards > 1 else 0
    yield "CloudWatch", "metrics", "counted", len(of_all - ONLY_OF_STREAMS), "cloudwatch_metric"
    if shards:
        yield "CloudWatch", "shard metrics", "assumed", len(of_all) * shards, "cloudwatch_metric"
    yield "CloudWatch", "alarms", "assumed", ALARMS + ALARMS_OF_A_SHARD * shards, "cloudwatch_alarm"
    if not deployment.only_alarm_metrics:
        yield "CloudWatch", "dashboards", "assumed", 1, "cloudwatch_dashboard"
    # A run reports once in a minute without work, and what it finished; a builder no more than faults to alarms.
    reports = min(shape.triggers_per_hour, 60 * shape.shards + manifests)
    of_functions = calls - (builds if deployment.only_alarm_metrics else 0)
    yield "CloudWatch", "PutMetricData", "assumed", reports + of_functions, "cloudwatch_request"
    if has_files:  # of the control plane, for the age of the oldest event
        yield "CloudWatch", "GetMetricData", "assumed", 60, "cloudwatch_query"
    logged = (calls + reports + manifests) * _LOG_BYTES
    yield "CloudWatch", "MB of logs", "assumed", logged / 1e6, "cloudwatch_log_mb"


def _of_engine(load: Load, shape: Shape, manifests: float, outputs: int) -> tuple[str, Basis, Requests]:
    """This engine's additional requests."""
    if shape.engine == "native":
        output_bytes = math.ceil(load.bytes_per_hour / manifests * shape.ratio / outputs)
        return "native", "counted", of_streamed_output(output_bytes) * (outputs * manifests)
    return "Spark", "assumed", of_conversion(manifests, outputs * manifests, load.files_per_hour)

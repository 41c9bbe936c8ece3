"""Cost: sums that were done by hand, and times that count once."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.records import RecentCommit
from compactor.cost.cost import (
    ALARMS,
    BATCH_MESSAGES,
    SMALL_WINDOW_SECONDS,
    WINDOW_SECONDS,
    Deployment,
    Estimate,
    Shape,
    builds_per_hour,
    estimate,
)
from compactor.cost.measured_cost import cost_metrics, measured_cost
from compactor.cost.price_table import REGIONS
from compactor.cost.prices import (
    DPU_PER_WORKER,
    FIRST_REGION,
    GIB,
    GLUE_VERSIONS,
    PRICES,
    SHIPPED,
    Load,
    PricedJob,
    prices_of,
)
from compactor.cost.topic_cost import TopicInput
from compactor.engines.engine import EngineName
from compactor.telemetry.metrics import (
    CATALOGUE,
    ONLY_OF_LOGS,
    ONLY_OF_PARTITIONS,
    ONLY_OF_STREAMS,
)
from deploy import ROOT
from tests.support.recent_commits import recent_commit

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
METRICS = len(CATALOGUE.keys() - ONLY_OF_STREAMS - ONLY_OF_PARTITIONS - ONLY_OF_LOGS)

JOBS = [
    # type, workers, version, DPU, dollars an hour, dollars a month
    ("G.2X", 10, "6.0", 20, 6.16, 4496.80),
    ("G.2X", 10, "5.1", 20, 8.80, 6424.00),
    ("G.1X", 2, "5.1", 2, 0.88, 642.40),
    ("G.1X", 2, "6.0", 2, 0.616, 449.68),
    ("G.025X", 2, "5.0", 0.5, 0.22, 160.60),
    ("G.4X", 3, "4.0", 12, 5.28, 3854.40),
    ("R.2X", 4, "5.1", 8, 4.16, 3036.80),
    ("R.1X", 2, "6.0", 2, 0.728, 531.44),
]

SHAPE = Shape(
    engine="spark",
    target_manifest_bytes=10_000_000,
    target_file_bytes=5_000_000,
    max_wait_seconds=3600,
    trigger_interval_seconds=3600,
    ratio=0.5,
)

# A million files of 1,000 bytes an hour: 100 manifests of one output each, one micro-batch, and 1,200 calls of the
# builder, by five pollers with a window of 15 s each, more than 1,010,000 / 2,000 full batches.
Item = tuple[str, str, float, float]
# service, item, quantity, dollars an hour
FIRST: list[Item] = [
    ("Glue", "DPU-hours", 20, 6.16),
    ("S3", "GET, compactor", 100 * 11 + 1_000_000 + 720, 0.400728),
    ("S3", "PUT, compactor", 100 * 13 + 360, 0.0083),
]
OF_ENGINE: dict[EngineName, list[Item]] = {
    "spark": [
        ("S3", "GET, Spark", 100 * 20 + 5_000_000, 2.0008),
        ("S3", "PUT, Spark", 100 * 17 + 1_000_000, 5.0085),
    ],
    "native": [("S3", "PUT, native", 100, 0.0005)],
}
REST: list[Item] = [
    ("S3", "GET, stream", 20, 0.000008),
    ("S3", "PUT, stream", 15, 0.000075),
    # 63 a pending part of an hour, 6 a minute, and 7 readers of 100 new summaries
    ("S3", "GET, functions", 1_200 * 64 + 360 + 700, 0.031144),
    ("S3", "PUT, functions", 2_400 + 240 + 500 + 72, 0.01606),
    ("SQS", "requests", 1_212_900, 0.48516),
    ("DynamoDB", "claims written", 1_010_000, 0.63125),
    ("DynamoDB", "claims read", 10_000, 0.00125),
    ("Lambda", "GB-seconds", 1_200 + 4_040 + 120 + 60, 5_420 * 0.0000166667),
    ("Lambda", "calls", 1_320, 0.000264),
    ("CloudWatch", "metrics", METRICS, 0.3 * METRICS / 730),
    ("CloudWatch", "alarms", ALARMS, 0.1 * ALARMS / 730),
    ("CloudWatch", "dashboards", 1, 3 / 730),
    ("CloudWatch", "PutMetricData", 1_321, 0.01321),
    ("CloudWatch", "GetMetricData", 60, 0.0006),
    ("CloudWatch", "MB of logs", 1.421, 0.0007105),
]

RATES = [
    # files an hour, bytes of each, manifests an hour, with a manifest every two minutes at least
    (200_000, 3_670_016, 683.59375),
    (10, 100, 10),
    (100, 100, 30),
    (3600, 1024**3, 3600),
]


@pytest.mark.parametrize(("worker_type", "workers", "version", "dpu", "hour", "month"), JOBS)
def test_workers(worker_type: str, workers: int, version: str, dpu: float, hour: float, month: float) -> None:
    """A job costs its DPU, the driver's included, at the price of its Glue version and kind of worker."""
    job = PricedJob(worker_type, workers, version)
    assert (job.dpu, job.dollars_per_hour) == (dpu, pytest.approx(hour))
    assert job.dollars_per_hour * 730 == pytest.approx(month)


@pytest.mark.parametrize(
    ("job", "items", "hour"),
    [
        # 3 workers of 4 vCPU and 16 GB; 2 tasks of 2 vCPU and 4 GB; 2 machines of 2 vCPU
        (PricedJob("G.1X", 3, "6.0", runtime="emr"), [("EMR", 12), ("EMR", 48)], 12 * 0.052624 + 48 * 0.0057785),
        (PricedJob("2x4", 2, "6.0", runtime="ecs"), [("Fargate", 4), ("Fargate", 8)], 4 * 0.04048 + 8 * 0.004445),
        (PricedJob("2x4", 2, "6.0", runtime="machine"), [("EC2", 4)], 0.17),
    ],
    ids=str,
)
def test_workers_elsewhere(job: PricedJob, items: list[tuple[str, float]], hour: float) -> None:
    """A job that Glue does not run costs its virtual CPUs and its memory, at the prices of the service."""
    lines = job.lines_in(PRICES)
    assert [(line.service, line.quantity) for line in lines] == items
    assert job.dollars_per_hour == pytest.approx(hour)
    assert {line.price.as_of for line in lines} == {"2026-12-01"}


def test_a_job_without_spark_lists() -> None:
    """It asks S3 for the waiting manifests, instead of writing a checkpoint for each micro-batch."""
    job, load = PricedJob("2x4", 1, "6.0", runtime="ecs"), Load(1_000_000, 1000)
    lists, streams = (
        {line.item: line.quantity for line in estimate(load, job, replace(SHAPE, engine="native", lists=lists)).lines}
        for lists in (True, False)
    )
    triggers = 3600 / SHAPE.trigger_interval_seconds
    assert lists.keys() ^ streams.keys() == {"PUT, listing", "GET, stream", "PUT, stream"}
    assert (lists["PUT, listing"], streams["PUT, stream"]) == (triggers, 15 * triggers)


def test_every_worker_has_a_price() -> None:
    """Every type of worker costs something on every version of Glue, and every price has its source and date."""
    assert all(PricedJob(name, 2, version).dollars_per_hour > 0 for name in DPU_PER_WORKER for version in GLUE_VERSIONS)
    assert all(price.dollars > 0 and price.unit and price.source and price.as_of for price in PRICES.values())


def million(engine: EngineName) -> tuple[Estimate, list[Item]]:
    """The estimate, and the sums that were done by hand."""
    found = estimate(Load(1_000_000, 1000), PricedJob("G.2X", 10, "6.0"), replace(SHAPE, engine=engine))
    return found, [*FIRST, *OF_ENGINE[engine], *REST]


@pytest.mark.parametrize("engine", OF_ENGINE)
def test_every_item(engine: EngineName) -> None:
    """Each service's quantities and dollars are those of the sums by hand, and nothing else is charged."""
    found, lines = million(engine)
    assert [(line.service, line.item) for line in found.lines] == [(service, item) for service, item, _, _ in lines]
    for line, (_, item, quantity, dollars) in zip(found.lines, lines, strict=True):
        assert (item, line.quantity) == (item, pytest.approx(quantity))
        assert (item, line.dollars_per_hour) == (item, pytest.approx(dollars))
        assert line.dollars_per_month == pytest.approx(730 * dollars)


@pytest.mark.parametrize("engine", OF_ENGINE)
def test_totals(engine: EngineName) -> None:
    """An hour is the sum of the items, a month 730 of them, and a terabyte what a thousandth of one costs, times it."""
    found, lines = million(engine)
    hour = sum(dollars for *_, dollars in lines)
    assert (found.manifests_per_hour, found.outputs_per_manifest) == (100, 1)
    assert found.dollars_per_hour == pytest.approx(hour)
    assert found.dollars_per_month == pytest.approx(hour * 730)
    assert found.dollars_per_terabyte == pytest.approx(hour * 1000)


def test_a_small_stream() -> None:
    """A gigabyte an hour costs less than $25 a month if it is deployed for that: 12 manifests, 150 builder calls."""
    shape = Shape("native", 1024**3, 128 * 1024**2, max_wait_seconds=300, trigger_interval_seconds=10, lists=True)
    small = Deployment(window_seconds=SMALL_WINDOW_SECONDS, only_alarm_metrics=True, has_manifest_queue=True)
    found = estimate(Load(285, 3_670_016), PricedJob("0.25x0.5", 1, "6.0", runtime="ecs"), shape, small)
    quantities = {line.item: line.quantity for line in found.lines}
    assert found.dollars_per_month < 25
    assert "dashboards" not in quantities
    assert quantities["PUT, listing"] == 12 + 2 * 12
    assert quantities["PUT, compactor"] == 12 * 13 + 60 + 3 * 12
    assert quantities["PutMetricData"] == 60 + 12 + 120
    assert quantities["metrics"] == 8
    assert quantities["requests"] == pytest.approx(285 * 1.01 * 1.2 + 900 + 180 + 24)


def test_large_outputs_are_written_in_parts() -> None:
    """The requests of the native engine are those of each output: here two of 50 MB a manifest, in three parts each."""
    shape = replace(SHAPE, engine="native", target_manifest_bytes=200_000_000, target_file_bytes=50_000_000)
    found = estimate(Load(1_000_000, 1000), PricedJob("G.2X", 10, "6.0"), shape)
    assert found.outputs_per_manifest == 2
    (line,) = [line for line in found.lines if line.item == "PUT, native"]
    assert (line.quantity, line.basis) == (5 * 2 * (3 + 2), "counted")


@pytest.mark.parametrize(("files", "size", "manifests"), RATES)
def test_manifests(files: float, size: int, manifests: float) -> None:
    """Manifests are as many as the bytes fill, and under a light load as many as waited long enough."""
    shape = Shape("native", 1024**3, 128 * 1024**2, max_wait_seconds=120, trigger_interval_seconds=10)
    assert shape.manifests_per_hour(Load(files, size)) == pytest.approx(manifests)


def commit(end_seconds: float, seconds: float, input_bytes: int = 10**9) -> RecentCommit:
    decided_at = NOON + timedelta(seconds=end_seconds)
    return recent_commit(decided_at, input_bytes=input_bytes, input_files=286, seconds=seconds)


BUILDS = [
    # events an hour, calls an hour
    (0, 0),
    (10, 10),  # a call for each
    (1_200, 1_200),
    (202_000, 1_200),  # 168 events each, not full batches
    (2_400_000, 1_200),
    (4_000_000, 2_000),  # full batches
]


@pytest.mark.parametrize(("events", "calls"), BUILDS)
def test_builder_batches(events: float, calls: float) -> None:
    """Five pollers fill a batch each for the window; a batch is sent earlier only if it is full."""
    assert builds_per_hour(events) == calls


def test_what_is_shipped() -> None:
    """Window, batch and workers are those of production's parameters."""
    given = json.loads((ROOT / "deploy" / "parameters" / "prod.json").read_text())
    assert (float(given["BuilderWindowSeconds"]), int(given["BuilderBatchMessages"])) == (
        WINDOW_SECONDS,
        BATCH_MESSAGES,
    )
    shipped = PricedJob(given["WorkerType"], int(given["MaxWorkers"]), given["GlueVersion"])
    assert shipped == SHIPPED == PricedJob("G.1X", 3, "6.0")


def test_what_is_kept() -> None:
    """Input, output and claims cost by their days; the totals leave them out."""
    load = Load(1_000, GIB)
    found = estimate(load, SHIPPED, SHAPE, Deployment(input_days=2, output_days=10))
    assert [(line.service, line.item, pytest.approx(line.quantity)) for line in found.kept] == [
        ("S3", "input of 2 days", 48_000),
        ("S3", "output of 10 days", 120_000),
        ("DynamoDB", "claims kept", 24_000 * 30 * 400 / GIB),
        ("DynamoDB", "claims restorable", 24_000 * 30 * 400 / GIB),
    ]
    assert found.kept[0].dollars_per_month == pytest.approx(48_000 * 0.023)
    assert found.dollars_per_hour == pytest.approx(sum(line.dollars_per_hour for line in found.lines))
    assert found.nat.dollars_per_hour == pytest.approx(1_500 * 0.045)


def test_what_options_add() -> None:
    """A key is paid by the month and for the requests that bucket keys leave, EventBridge by the event."""
    load, job = Load(1_000_000, 1000), PricedJob("G.2X", 10, "6.0")
    plain = estimate(load, job, SHAPE)
    both = estimate(load, job, SHAPE, Deployment(has_key=True, uses_event_bridge=True))
    more = {f"{line.service} {line.item}": line for line in both.lines[len(plain.lines) :]}
    assert both.lines[: len(plain.lines)] == plain.lines
    assert more.keys() == {"EventBridge events of S3", "KMS key", "KMS requests"}
    assert more["EventBridge events of S3"].dollars_per_hour == pytest.approx(1.01)
    assert more["KMS key"].dollars_per_month == pytest.approx(1)
    of_s3 = sum(line.quantity for line in plain.lines if line.service == "S3")
    assert more["KMS requests"].quantity == pytest.approx(of_s3 / 100 + 9 * 12)


@pytest.mark.parametrize("region", REGIONS)
def test_prices_of_a_region(region: str) -> None:
    """Each region has all prices, dated; what costs the same everywhere, Glue too, has one price."""
    found = prices_of(region)
    assert found.keys() == PRICES.keys()
    assert all(price.dollars > 0 and price.source and price.as_of for price in found.values())
    same = {name for name in found if name.startswith(("glue", "lambda", "sqs", "cloudwatch", "kms"))} - {
        "cloudwatch_log_mb"
    }
    assert {name: found[name].dollars for name in same} == {name: PRICES[name].dollars for name in same}


def test_a_region_without_prices() -> None:
    """It gets those of the first region; another region's differ where AWS's do."""
    assert {name: each.dollars for name, each in prices_of("mars-1").items()} == {
        name: each.dollars for name, each in prices_of(FIRST_REGION).items()
    }
    assert prices_of("eu-central-1")["s3_put"].dollars == 0.0054
    load = Load(1000, 1000)
    dear, cheap = (estimate(load, SHIPPED, SHAPE, prices=prices_of(each)) for each in ("eu-central-1", FIRST_REGION))
    assert dear.dollars_per_hour > cheap.dollars_per_hour


AT_WORK = [
    ([(100, 100)], 100, 100),
    ([(100, 100), (150, 100)], 150, 150),  # two in flight
    ([(100, 100), (90, 10)], 100, 100),  # one within the other
    ([(100, 100), (200, 100)], 200, 200),  # one right after the other
    ([(400, 50), (100, 100), (150, 100)], 200, 400),  # a pause, and in any order
]


@pytest.mark.parametrize(("spans", "at_work", "elapsed"), AT_WORK)
def test_time_at_work(spans: list[tuple[float, float]], at_work: float, elapsed: float) -> None:
    """Time at work counts once however many manifests were in flight, and pauses count only as time that passed."""
    job = PricedJob("G.2X", 10, "6.0")
    found = measured_cost([commit(*span) for span in spans], job.dollars_per_hour)
    assert found is not None
    assert (found.at_work_seconds, found.elapsed_seconds) == (at_work, elapsed)
    assert found.dollars_at_work == pytest.approx(6.16 * at_work / 3600)
    assert found.dollars_elapsed == pytest.approx(6.16 * elapsed / 3600)
    assert (found.commits, found.input_files) == (len(spans), 286 * len(spans))
    assert found.per_terabyte(found.dollars_at_work) == pytest.approx(6.16 * at_work / 3600 / len(spans) * 1000)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 500)), min_size=1, max_size=20))
def test_time_at_work_is_what_is_covered(spans: list[tuple[int, int]]) -> None:
    """It is the number of seconds in which anything was in work."""
    found = measured_cost([commit(*span) for span in spans], 0.616)
    assert found is not None
    covered = {second for end, seconds in spans for second in range(end - seconds, end)}
    assert found.at_work_seconds == len(covered)


def test_nothing_to_measure() -> None:
    """Without commits nothing was measured, and without input no terabyte has a price."""
    job = PricedJob("G.2X", 10, "6.0")
    assert measured_cost([], job.dollars_per_hour) is None
    empty = measured_cost([commit(1, 0, input_bytes=0)], job.dollars_per_hour)
    assert empty is not None
    assert empty.per_terabyte(empty.dollars_at_work) is None


def test_metrics_of_cost() -> None:
    """The control plane's two figures: workers by the hour, and that over the input since the oldest commit."""
    job = PricedJob("G.2X", 10, "6.0")
    recent = [commit(100, 100), commit(1800, 100)]
    values = cost_metrics([job], recent, NOON + timedelta(hours=1))
    assert values == {
        "EstimatedDollarsPerHour": pytest.approx(6.16),
        "EstimatedDollarsPerTerabyte": pytest.approx(6.16 / 0.002),
    }
    assert set(values) <= set(CATALOGUE)
    assert cost_metrics([job], [], NOON) == {"EstimatedDollarsPerHour": pytest.approx(6.16)}
    assert cost_metrics([], recent, NOON) == {"EstimatedDollarsPerHour": 0}
    assert cost_metrics([PricedJob("Standard", 2, "5.1")], recent, NOON) == {}
    assert cost_metrics([job, PricedJob("G.2X", 2, "7.0")], recent, NOON) == {}


TOPIC = TopicInput("msk", GIB * 10.0, record_bytes=1500, partitions=6)
TOPICS: list[tuple[TopicInput, list[Item], list[Item]]] = [
    # what the compactor causes, and all else
    (TOPIC, [], [("MSK", "broker-hours", 3, 0.63), ("MSK", "GB kept", 720, 720 * 0.1 / 730)]),
    (
        replace(TOPIC, brokers=2, broker_dollars=0.5, retention_hours=1),
        [],
        [("MSK", "broker-hours", 2, 1.0), ("MSK", "GB kept", 30, 30 * 0.1 / 730)],
    ),
    (
        replace(TOPIC, service="msk-serverless"),
        [("MSK", "GB read", 10, 0.5)],
        [
            ("MSK", "cluster-hours", 1, 0.75),
            ("MSK", "partition-hours", 6, 0.009),
            ("MSK", "GB written", 10, 1.0),
            ("MSK", "GB kept", 240, 240 * 0.1 / 730),
        ],
    ),
    (
        replace(TOPIC, service="kinesis", record_bytes=GIB // 1000),  # of 41.9 units each
        [],
        [("Kinesis", "shard-hours", 6, 0.09), ("Kinesis", "payload units", 420_000.3, 0.00588)],
    ),
    (
        replace(TOPIC, service="kinesis", has_fan_out=True, record_bytes=25 * 1024),
        [("Kinesis", "fan-out, shards", 6, 0.09), ("Kinesis", "fan-out, GB", 10, 0.13)],
        [("Kinesis", "shard-hours", 6, 0.09), ("Kinesis", "payload units", 419_430.4, 0.005872)],
    ),
    (
        replace(TOPIC, service="kinesis-on-demand", record_bytes=1025),  # each counts as 2 KB
        [("Kinesis", "GB read", 10 * 2048 / 1025, 20480 / 1025 * 0.04)],
        [("Kinesis", "stream-hours", 1, 0.04), ("Kinesis", "GB written", 10 * 2048 / 1025, 20480 / 1025 * 0.08)],
    ),
]


@pytest.mark.parametrize(("topic", "read", "there"), TOPICS)
def test_a_topic_by_hand(topic: TopicInput, read: list[Item], there: list[Item]) -> None:
    """What the compactor causes is in the total; what is there for all is beside it."""
    load = Load(1000, GIB // 100)
    found = estimate(load, SHIPPED, SHAPE, topic=replace(topic, bytes_per_hour=load.bytes_per_hour))
    of_topic = [line for line in found.lines if line.service in {"MSK", "Kinesis"}]
    for lines, expected in ((of_topic, read), (found.producers, there)):
        assert [(line.service, line.item) for line in lines] == [(service, item) for service, item, _, _ in expected]
        for line, (_, _, quantity, dollars) in zip(lines, expected, strict=True):
            assert (line.quantity, line.dollars_per_hour) == pytest.approx((quantity, dollars), rel=1e-3)
    assert found.dollars_per_hour == pytest.approx(sum(line.dollars_per_hour for line in found.lines))


def test_a_topic_has_no_files() -> None:
    """So nothing is fetched from S3 or claimed, there is no queue, and the input is kept elsewhere."""
    load = Load(1_000_000, 1000)
    of_files, of_topic = (
        estimate(load, SHIPPED, SHAPE, topic=each)
        for each in (None, replace(TOPIC, bytes_per_hour=load.bytes_per_hour))
    )
    assert {line.service for line in of_files.lines} - {line.service for line in of_topic.lines} == {"SQS", "DynamoDB"}
    gets = {line.item: line.quantity for line in of_topic.lines}["GET, compactor"]
    assert gets == {line.item: line.quantity for line in of_files.lines}["GET, compactor"] - 1_000_000
    assert [line.item for line in of_topic.kept] == ["output of 365 days"]
    assert of_topic.dollars_per_terabyte == pytest.approx(of_topic.dollars_per_hour * 1000)
    assert of_topic.manifests_per_hour == of_files.manifests_per_hour

"""AWS list prices in US dollars: everything that an estimate uses, in one place, to be looked up and edited here.

Free tiers, volume tiers and discounts are left out. It is Python, so that the functions' zip contains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

AS_OF = "2026-11-22"  # date of the look-up
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1")
SOURCE = "public list price, as quoted by third parties"
UNSEEN = "third parties; AWS's page was not seen"

_TOPICS = "2026-11-24"
_SERVICES = "2026-12-01"
_MSK = f"{UNSEEN}: gist.github.com/EverettBerry/d24aa940ad43c313803248cea6366682, of 2022"
_BROKER = f"{UNSEEN}: notes on MSK in public repositories, among them Gilgamech/OfferingOverview"
_KINESIS = f"{UNSEEN}: c3x.dev/resources/aws/aws_kinesis_stream, i05nagai/memorandum"
_TASKS = f"{UNSEEN}: guides to Fargate's prices and tables in public repositories, which agree"
_ON_DEMAND = f"{UNSEEN}: comparisons of queues in public repositories, which agree"


@dataclass(frozen=True, slots=True)
class Listed:
    """A listed price."""

    dollars: float  # in the first region, for `per` units
    per: int  # number of units for the price
    unit: str  # the unit
    is_monthly: bool = False  # whether it is a price per month
    is_unseen: bool = False  # whether it is known only from third parties
    elsewhere: Mapping[str, float] = field(default_factory=dict)  # dollars in regions with a different price
    source: str = ""  # its own source, if any
    as_of: str = AS_OF  # date of the look-up


LISTED = {
    "glue_dpu_hour": Listed(
        0.44, 1, "DPU-hour of Glue 2.0 to 5.1, billed by the second, with at least a minute per run"
    ),
    "glue_memory_dpu_hour": Listed(0.52, 1, "memory-optimised DPU-hour of Glue 2.0 to 5.1"),
    "glue_6_dpu_hour": Listed(
        0.308, 1, "DPU-hour of Glue 6.0, billed by the second, with at least a minute per run", is_unseen=True
    ),
    "glue_6_memory_dpu_hour": Listed(0.364, 1, "memory-optimised DPU-hour of Glue 6.0", is_unseen=True),
    "emr_vcpu_hour": Listed(
        0.052624, 1, "vCPU-hour of EMR Serverless", elsewhere={"eu-central-1": 0.060528}, source=_TASKS, as_of=_SERVICES
    ),
    "emr_gb_hour": Listed(
        0.0057785, 1, "GB-hour of EMR Serverless", elsewhere={"eu-central-1": 0.006643}, source=_TASKS, as_of=_SERVICES
    ),
    "ecs_vcpu_hour": Listed(
        0.04048, 1, "vCPU-hour of Fargate on x86", elsewhere={"eu-central-1": 0.04656}, source=_TASKS, as_of=_SERVICES
    ),
    "ecs_gb_hour": Listed(
        0.004445, 1, "GB-hour of Fargate on x86", elsewhere={"eu-central-1": 0.00511}, source=_TASKS, as_of=_SERVICES
    ),
    "machine_vcpu_hour": Listed(
        0.0425, 1, "vCPU-hour of an EC2 instance with 2 GB per vCPU (c5.large)", source=_TASKS, as_of=_SERVICES
    ),
    "s3_put": Listed(0.005, 1000, "PUT, COPY, POST or LIST request, S3 Standard", elsewhere={"eu-central-1": 0.0054}),
    "s3_get": Listed(
        0.0004, 1000, "GET or HEAD request, S3 Standard; DELETE is free", elsewhere={"eu-central-1": 0.00043}
    ),
    "s3_storage": Listed(
        0.023,
        1,
        "GB (2^30 bytes) per month in S3 Standard, for the first 50 TB",
        is_monthly=True,
        elsewhere={"eu-central-1": 0.0245},
    ),
    "sqs": Listed(0.4, 1_000_000, "request to a standard queue"),
    "lambda_gb_second": Listed(1.66667e-05, 1, "GB-second of Lambda on x86, by the millisecond"),
    "lambda_call": Listed(0.2, 1_000_000, "call of a function"),
    "dynamodb_write": Listed(
        0.625,
        1_000_000,
        "write of up to 1 KB, on demand; less counts as 1 KB",
        elsewhere={"eu-west-1": 0.70675, "eu-central-1": 0.7625},
    ),
    "dynamodb_read": Listed(
        0.125,
        1_000_000,
        "consistent read of up to 4 KB, on demand; less counts as 4 KB",
        elsewhere={"eu-west-1": 0.1415, "eu-central-1": 0.1525},
    ),
    "dynamodb_storage": Listed(
        0.25,
        1,
        "GB (2^30 bytes) per month in a table",
        is_monthly=True,
        elsewhere={"eu-west-1": 0.283, "eu-central-1": 0.306},
    ),
    "dynamodb_pitr": Listed(
        0.2,
        1,
        "GB (2^30 bytes) of a table per month, kept for point-in-time recovery",
        is_monthly=True,
        elsewhere={"eu-west-1": 0.2264, "eu-central-1": 0.2448},
    ),
    "cloudwatch_metric": Listed(0.3, 1, "metric, for the first 10,000", is_monthly=True),
    "cloudwatch_request": Listed(0.01, 1000, "PutMetricData request"),
    "cloudwatch_query": Listed(0.01, 1000, "metric in a GetMetricData request"),
    "cloudwatch_log_mb": Listed(
        0.5, 1000, "MB (10^6 bytes) of logs received", elsewhere={"eu-west-1": 0.57, "eu-central-1": 0.63}
    ),
    "cloudwatch_alarm": Listed(0.1, 1, "alarm", is_monthly=True),
    "cloudwatch_dashboard": Listed(3.0, 1, "dashboard", is_monthly=True),
    "kms_key": Listed(1.0, 1, "customer's key", is_monthly=True),
    "kms_request": Listed(0.03, 10_000, "request to a symmetric key"),
    "eventbridge_event": Listed(
        1.0,
        1_000_000,
        "S3 event; sources disagree whether it is free. Sending it to another account costs the sender as much",
        is_unseen=True,
    ),
    "nat_gb": Listed(
        0.045, 1, "GB (2^30 bytes) through a NAT gateway", elsewhere={"eu-west-1": 0.048, "eu-central-1": 0.052}
    ),
    "msk_broker_hour": Listed(0.21, 1, "hour of a broker kafka.m5.large", source=_BROKER, as_of=_TOPICS),
    "msk_storage": Listed(0.1, 1, "GB (2^30 bytes) per month on a broker", is_monthly=True, source=_MSK, as_of=_TOPICS),
    "msk_serverless_hour": Listed(0.75, 1, "hour of a serverless cluster", source=_MSK, as_of=_TOPICS),
    "msk_serverless_partition": Listed(0.0015, 1, "hour of a partition", source=_MSK, as_of=_TOPICS),
    "msk_serverless_in": Listed(0.1, 1, "GB (2^30 bytes) written", source=_MSK, as_of=_TOPICS),
    "msk_serverless_out": Listed(0.05, 1, "GB (2^30 bytes) read", source=_MSK, as_of=_TOPICS),
    "kinesis_shard_hour": Listed(0.015, 1, "hour of a shard", source=_KINESIS, as_of=_TOPICS),
    "kinesis_put": Listed(0.014, 1_000_000, "payload unit: 25 KB of a record, or less", source=_KINESIS, as_of=_TOPICS),
    "kinesis_fan_out_hour": Listed(
        0.015, 1, "hour of a shard for a consumer with enhanced fan-out", source=_KINESIS, as_of=_TOPICS
    ),
    "kinesis_fan_out_gb": Listed(
        0.013, 1, "GB (2^30 bytes) read with enhanced fan-out", source=_KINESIS, as_of=_TOPICS
    ),
    "kinesis_stream_hour": Listed(0.04, 1, "hour of a stream on demand", source=_ON_DEMAND, as_of=_TOPICS),
    "kinesis_on_demand_in": Listed(
        0.08, 1, "GB (2^30 bytes) written on demand; records count by the KB", source=_ON_DEMAND, as_of=_TOPICS
    ),
    "kinesis_on_demand_out": Listed(
        0.04, 1, "GB (2^30 bytes) read on demand; records count by the KB", source=_ON_DEMAND, as_of=_TOPICS
    ),
}
"""Every price by name."""

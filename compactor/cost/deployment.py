"""What a deployment adds to the cost of a load: how the builder's batches form, and what is kept. No I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compactor.cost.lines import CostLine, Load
from compactor.cost.price_list import Price
from compactor.cost.prices import GIB, HOUR_SECONDS

POLLERS = 5
"""Lambda's pollers of a queue: it "starts processing five batches at a time with five concurrent invocations" [Lambda
developer guide, services-sqs-scaling]. Each fills its own batch."""

WINDOW_SECONDS = 15.0  # BuilderWindowSeconds of the template's parameters
BATCH_MESSAGES = 2000  # BuilderBatchMessages of production
CLAIM_BYTES = 400  # a claim: key, manifest and times, with the 100 bytes that DynamoDB adds. Assumed
_KMS_SHARE = 0.01  # of S3's requests: bucket keys spare "up to 99 percent" [S3 user guide, bucket-key]
_DATA_KEY_SECONDS = 300.0  # for which SQS and SNS reuse a data key [SQS developer guide, sqs-key-management]
_KEY_CALLS = 2 * 3 + 3  # R = B / D * (2 * P + C) [the same page], three queues with a producer and a consumer each


@dataclass(frozen=True, slots=True)
class Deployment:
    """How the load is deployed."""

    input_days: float = 30  # days for which input is kept
    output_days: float = 365  # days for which output is kept
    claim_days: float = 30  # builder.claim_ttl_days
    has_key: bool = False  # whether KmsKey is set
    uses_event_bridge: bool = False  # whether the input bucket exists, or is in another account


def builds_per_hour(events_per_hour: float) -> float:
    """Calls of the builder: one for each window of each poller, more where batches are full, none without events."""
    by_window = min(events_per_hour, POLLERS * HOUR_SECONDS / WINDOW_SECONDS)
    return max(by_window, events_per_hour / BATCH_MESSAGES)


def kept_lines(
    load: Load, ratio: float, deployment: Deployment, prices: Mapping[str, Price], *, has_files: bool = True
) -> Iterator[CostLine]:
    """What is kept once input and output are as old as they get. Of a topic, the input is kept by its cluster."""
    day_gib = load.bytes_per_hour * 24 / GIB
    claims = load.files_per_hour * 24 * deployment.claim_days * CLAIM_BYTES / GIB
    input_gib, output_gib = day_gib * deployment.input_days, day_gib * ratio * deployment.output_days
    if has_files:
        yield CostLine("S3", f"input of {deployment.input_days:g} days", "given", input_gib, prices["s3_storage"])
    yield CostLine("S3", f"output of {deployment.output_days:g} days", "given", output_gib, prices["s3_storage"])
    if not has_files:
        return
    yield CostLine("DynamoDB", "claims kept", "assumed", claims, prices["dynamodb_storage"])
    yield CostLine("DynamoDB", "claims restorable", "assumed", claims, prices["dynamodb_pitr"])


def extra_lines(
    events: float, s3_requests: float, deployment: Deployment, prices: Mapping[str, Price]
) -> Iterator[CostLine]:
    """What options of the deployment cost by the hour."""
    if deployment.uses_event_bridge:
        yield CostLine("EventBridge", "events of S3", "assumed", events, prices["eventbridge_event"])
    if deployment.has_key:
        calls = s3_requests * _KMS_SHARE + _KEY_CALLS * HOUR_SECONDS / _DATA_KEY_SECONDS
        yield CostLine("KMS", "key", "given", 1, prices["kms_key"])
        yield CostLine("KMS", "requests", "assumed", calls, prices["kms_request"])


def nat_line(load: Load, ratio: float, prices: Mapping[str, Price]) -> CostLine:
    """What a NAT gateway would add for a job in a VPC that has no gateway endpoint for S3."""
    return CostLine("NAT", "GB", "counted", load.bytes_per_hour * (1 + ratio) / GIB, prices["nat_gb"])

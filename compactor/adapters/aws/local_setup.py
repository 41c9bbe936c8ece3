"""Creates buckets, queues and a claims table in a local stand-in for AWS, where there is no deployment."""

from typing import Any

from compactor.adapters.aws.clients import dynamodb_client, s3_client, sqs_client
from compactor.adapters.aws.errors import translated


def make_buckets(names: list[str], *, region: str, endpoint_url: str) -> None:
    """Create empty buckets."""
    client: Any = s3_client(region, endpoint_url)
    # S3 refuses a location constraint for its first region, and requires one everywhere else.
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    for name in names:
        with translated(f"s3://{name}"):
            client.create_bucket(Bucket=name, **where)


def make_claims_table(name: str, *, region: str, endpoint_url: str) -> None:
    """Create the table that `DynamoClaims` expects."""
    client: Any = dynamodb_client(region, endpoint_url)
    with translated(f"table {name}"):
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
        )


def make_event_queue(name: str, bucket: str, *, region: str, endpoint_url: str) -> str:
    """Create a queue that an existing bucket announces its new objects on, and return its URL."""
    queues: Any = sqs_client(region, endpoint_url)
    with translated(f"queue {name}"):
        url: str = queues.create_queue(QueueName=name)["QueueUrl"]
        arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    notified = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}
    buckets: Any = s3_client(region, endpoint_url)
    with translated(f"s3://{bucket}"):
        buckets.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [notified]}
        )
    return url

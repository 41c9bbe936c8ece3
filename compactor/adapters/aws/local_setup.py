"""Makes buckets, queues and a claims table on a local stand-in for AWS, where no deployment has made them."""

from typing import Any

from compactor.adapters.aws.clients import dynamodb_client, s3_client, sqs_client
from compactor.adapters.aws.errors import translated


def make_buckets(names: list[str], *, region: str, endpoint_url: str) -> None:
    """Make empty buckets.

    Args:
        names: Of buckets that do not exist.
        region: Where they are.
        endpoint_url: The stand-in.
    """
    client: Any = s3_client(region, endpoint_url)
    # S3 takes no location constraint for its first region, and asks for one everywhere else.
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    for name in names:
        with translated(f"s3://{name}"):
            client.create_bucket(Bucket=name, **where)


def make_claims_table(name: str, *, region: str, endpoint_url: str) -> None:
    """Make the table that `DynamoClaims` expects.

    Args:
        name: Of a table that does not exist.
        region: Where it is.
        endpoint_url: The stand-in.
    """
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
    """Make a queue to which a bucket announces its new objects.

    Args:
        name: Of a queue that does not exist.
        bucket: Of a bucket that does.
        region: Where they are.
        endpoint_url: The stand-in.

    Returns:
        The queue's URL.
    """
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

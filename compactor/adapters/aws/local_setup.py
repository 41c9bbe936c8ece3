"""AWS on a local stand-in: its resources, and a function fed from a queue as by Lambda."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from compactor.adapters.aws.clients import dynamodb_client, s3_client, sqs_client
from compactor.adapters.aws.errors import translated

_RECEIVE_AT_MOST = 10  # the limit of ReceiveMessage and DeleteMessageBatch [SQS API]

Handler = Callable[[Mapping[str, Any], object], Mapping[str, Any]]


@dataclass(slots=True)
class Fed:
    """The number of calls of a function, of their messages, and of the messages that it reported as failed."""

    batches: int = 0
    messages: int = 0
    failed: int = 0


def feed(client: Any, queue_url: str, handler: Handler, *, batch_size: int = 1000) -> Fed:
    """Call a function with up to `batch_size` queue messages at a time, until none is visible.

    Messages that its partial batch response reports as failed return after their visibility timeout; the others are
    deleted.
    """
    fed = Fed()
    visible = _visible(client, queue_url)
    while batch := list(islice(visible, batch_size)):
        answer = handler({"Records": [_record(message) for message in batch]}, None)
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        _delete(client, queue_url, [message for message in batch if message["MessageId"] not in failed])
        fed.batches += 1
        fed.messages += len(batch)
        fed.failed += len(failed)
    return fed


def _visible(client: Any, queue_url: str) -> Iterator[dict[str, Any]]:
    while True:
        with translated(queue_url):
            answer = client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_RECEIVE_AT_MOST)
        if not answer.get("Messages"):
            return
        yield from answer["Messages"]


def _record(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "eventSource": "aws:sqs",
    }


def _delete(client: Any, queue_url: str, messages: list[dict[str, Any]]) -> None:
    remaining = iter(messages)
    while batch := list(islice(remaining, _RECEIVE_AT_MOST)):
        entries = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(batch)]
        with translated(queue_url):
            client.delete_message_batch(QueueUrl=queue_url, Entries=entries)


def make_buckets(names: list[str], *, region: str, endpoint_url: str) -> None:
    """Create empty buckets."""
    client: Any = s3_client(region, endpoint_url)
    # S3 refuses a location constraint in its first region, and requires one everywhere else.
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
    """Create a queue, have an existing bucket announce its new objects there, and return its URL."""
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

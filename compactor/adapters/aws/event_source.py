"""Feeds a function from a queue as Lambda's event source mapping does, where there is no Lambda."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from compactor.adapters.aws.errors import translated

_RECEIVE_AT_MOST = 10  # the limit of ReceiveMessage and DeleteMessageBatch [SQS API]

Handler = Callable[[Mapping[str, Any], object], Mapping[str, Any]]


@dataclass(slots=True)
class Fed:
    """How often a function was called, with how many messages, and how many of them it reported as failed."""

    batches: int = 0
    messages: int = 0
    failed: int = 0


def feed(client: Any, queue_url: str, handler: Handler, *, batch_size: int = 1000) -> Fed:
    """Call a function with up to `batch_size` messages of a queue at a time, until none is visible.

    Messages that its partial batch response names come again after their visibility timeout; the others are deleted.
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

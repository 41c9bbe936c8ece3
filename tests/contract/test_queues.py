"""The contracts of queues and notifiers, in memory and on a stand-in for AWS."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.messages import SnsTopic, SqsBell, SqsQueue
from compactor.control.snapshot import Notifier, Queue, QueueDepth
from compactor.core.errors import AccessError
from tests.support.aws_stand_in import REGION
from tests.support.memory_glue import MemoryNotifier, MemoryQueue


@dataclass(frozen=True)
class WatchedQueue:
    """A queue, and the means to fill it, to work on it, and to have its age measured."""

    queue: Queue
    send: Callable[[int], None]
    receive: Callable[[int], None]
    measure: Callable[[float], None]


def memory_site() -> WatchedQueue:
    queue = MemoryQueue()

    def send(messages: int) -> None:
        queue.waiting += messages

    def receive(messages: int) -> None:
        queue.waiting -= messages
        queue.in_flight += messages

    def measure(seconds: float) -> None:
        queue.age_seconds = seconds

    return WatchedQueue(queue, send, receive, measure)


def sqs_site(endpoint: str) -> WatchedQueue:
    sqs, cloudwatch = (aws_client(name, REGION, endpoint) for name in ("sqs", "cloudwatch"))
    name = f"events-{uuid.uuid4().hex}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]

    def send(messages: int) -> None:
        for number in range(messages):
            sqs.send_message(QueueUrl=url, MessageBody=str(number))

    def receive(messages: int) -> None:
        sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=messages, VisibilityTimeout=600)

    def measure(seconds: float) -> None:
        datum = {
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": name}],
            "Timestamp": datetime.now(UTC) - timedelta(minutes=2),
            "Value": seconds,
            "Unit": "Seconds",
        }
        older = {**datum, "Timestamp": datetime.now(UTC) - timedelta(minutes=9), "Value": seconds * 2}
        cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=[older, datum])

    return WatchedQueue(SqsQueue(sqs=sqs, cloudwatch=cloudwatch, url=url), send, receive, measure)


@pytest.fixture(params=["memory", "sqs"])
def site(request: pytest.FixtureRequest) -> WatchedQueue:
    return memory_site() if request.param == "memory" else sqs_site(request.getfixturevalue("aws_endpoint"))


def test_an_empty_queue(site: WatchedQueue) -> None:
    """An empty queue holds nothing, and its age is unknown before the first measurement."""
    assert site.queue.depth() == QueueDepth(0, 0)
    assert site.queue.oldest_seconds(datetime.now(UTC)) is None


def test_depth(site: WatchedQueue) -> None:
    """Messages that wait are told apart from messages in flight."""
    site.send(3)
    site.receive(1)
    assert site.queue.depth() == QueueDepth(2, 1)


def test_age(site: WatchedQueue) -> None:
    """The age is the one that was measured last."""
    site.measure(42.0)
    assert site.queue.oldest_seconds(datetime.now(UTC)) == 42.0


def test_a_queue_that_does_not_exist(aws_endpoint: str) -> None:
    """A wrong URL is an error that an operator has to fix."""
    sqs = aws_client("sqs", REGION, aws_endpoint)
    with pytest.raises(AccessError, match="no-such-queue"):
        SqsQueue(sqs=sqs, cloudwatch=None, url=f"{aws_endpoint}/123456789012/no-such-queue").depth()


def test_a_bell_rings_once_for_each_message(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is taken off the queue; without one the poll ends, and a queue that does not exist is an error."""
    monkeypatch.setattr("compactor.adapters.aws.messages._POLL_SECONDS", 0)
    sqs = aws_client("sqs", REGION, aws_endpoint)
    url = sqs.create_queue(QueueName=f"manifests-{uuid.uuid4().hex}")["QueueUrl"]
    bell = SqsBell(sqs, url)
    assert not bell.wait()
    sqs.send_message(QueueUrl=url, MessageBody="a manifest")
    assert bell.wait()
    assert SqsQueue(sqs=sqs, cloudwatch=None, url=url).depth() == QueueDepth(0, 0)
    with pytest.raises(AccessError, match="no-such-queue"):
        SqsBell(sqs, f"{aws_endpoint}/123456789012/no-such-queue").wait()


Received = Callable[[], list[str]]
"""The messages that subscribers received so far, each with its subject."""


def memory_notifier() -> tuple[Notifier, Received]:
    kept = MemoryNotifier()
    return kept, lambda: [f"{subject}\n{text}" for subject, text in kept.messages]


def sns_notifier(aws_endpoint: str) -> tuple[Notifier, Received]:
    """A topic with a queue that subscribed to it."""
    sns, sqs = (aws_client(name, REGION, aws_endpoint) for name in ("sns", "sqs"))
    name = uuid.uuid4().hex
    arn = sns.create_topic(Name=name)["TopicArn"]
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue_arn)

    def received() -> list[str]:
        return [message["Body"] for message in sqs.receive_message(QueueUrl=url).get("Messages", ())]

    return SnsTopic(client=sns, arn=arn), received


@pytest.fixture(params=["memory", "sns"])
def notified(request: pytest.FixtureRequest) -> tuple[Notifier, Received]:
    return memory_notifier() if request.param == "memory" else sns_notifier(request.getfixturevalue("aws_endpoint"))


def test_a_message_reaches_subscribers(notified: tuple[Notifier, Received]) -> None:
    """A message reaches subscribers once, with its subject and all of its text."""
    notifier, received = notified
    assert received() == []
    notifier.tell("compactor-prod: started", "Done:\n- run jr_1 was started")
    [message] = received()
    assert "run jr_1 was started" in message
    assert "compactor-prod: started" in message


@pytest.mark.parametrize(
    ("subject", "sent"),
    [
        ("short", "short"),
        ("two\nlines\tand\x07 more", "two lines and more"),
        ("größer → 1", "gr er 1"),
        ("", "compactor"),
        ("x" * 101, "x" * 97 + "..."),
    ],
)
def test_subjects_that_sns_takes(aws_endpoint: str, subject: str, sent: str) -> None:
    """SNS takes subjects of 100 printable ASCII characters. Other subjects are made to fit, and long texts are cut."""
    client: Any = aws_client("sns", REGION, aws_endpoint)
    with Stubber(client) as stubber:
        expected = {"TopicArn": "arn:aws:sns:eu-west-1:123456789012:t", "Subject": sent, "Message": "é" * 60_000}
        stubber.add_response("publish", {"MessageId": "1"}, {**expected, "TopicArn": ANY})
        SnsTopic(client=client, arn=expected["TopicArn"]).tell(subject, "é" * 70_000)
        stubber.assert_no_pending_responses()

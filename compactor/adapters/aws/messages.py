"""Reads queues of SQS, and sends notifications to an SNS topic."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from compactor.adapters.aws.errors import translated
from compactor.control.snapshot import QueueDepth

_SUBJECT_CHARACTERS = 100  # SNS's limit; it accepts only printable ASCII [SNS API]
_TEXT_CHARACTERS = 60_000  # even at four bytes each below the 256 KiB of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class SnsTopic:
    """One topic, with a boto3 SNS client."""

    client: Any
    arn: str

    def tell(self, subject: str, text: str) -> None:
        with translated(f"topic {self.arn}"):
            self.client.publish(TopicArn=self.arn, Subject=_subject(subject), Message=text[:_TEXT_CHARACTERS])


def _subject(text: str) -> str:
    printable = "".join(letter if " " <= letter <= "~" else " " for letter in text)
    line = " ".join(printable.split()) or "compactor"
    return line if len(line) <= _SUBJECT_CHARACTERS else line[: _SUBJECT_CHARACTERS - 3] + "..."


_POLL_SECONDS = 20  # the longest poll [SQS API, ReceiveMessage]
_MESSAGES = 10  # the most in one response


@dataclass(frozen=True, slots=True)
class SqsBell:
    """Rings with each message of a queue, such as S3's about new objects in a prefix. What they say does not matter.

    Attributes:
        client: A boto3 client for SQS.
        url: The queue, which no other job may read.
    """

    client: Any
    url: str

    def wait(self) -> bool:
        with translated(f"queue {self.url}"):
            answer = self.client.receive_message(
                QueueUrl=self.url, MaxNumberOfMessages=_MESSAGES, WaitTimeSeconds=_POLL_SECONDS
            )
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(answer.get("Messages", ()))
            ]
            if entries:
                self.client.delete_message_batch(QueueUrl=self.url, Entries=entries)
        return bool(entries)


_MEASURED_WITHIN = timedelta(minutes=15)
"""SQS measures each minute and reports some minutes late. Older measurements are outdated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsQueue:
    """One queue, with boto3 clients for SQS and for CloudWatch, which has the age of the oldest message."""

    sqs: Any
    cloudwatch: Any
    url: str

    def depth(self) -> QueueDepth:
        waiting, in_flight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        with translated(f"queue {self.url}"):
            answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[waiting, in_flight])
        found = answer.get("Attributes", {})
        return QueueDepth(int(found[waiting]), int(found[in_flight]))

    def oldest_seconds(self, now: datetime) -> float | None:
        metric = {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": self.url.rpartition("/")[2]}],
        }
        query = {"Id": "age", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
        with translated(f"age of queue {self.url}"):
            answer = self.cloudwatch.get_metric_data(
                MetricDataQueries=[query],
                StartTime=now - _MEASURED_WITHIN,
                EndTime=now + timedelta(minutes=1),
                ScanBy="TimestampDescending",
            )
        points = [
            point
            for result in answer.get("MetricDataResults", ())
            for point in zip(result["Timestamps"], result["Values"], strict=True)
        ]
        return float(max(points)[1]) if points else None

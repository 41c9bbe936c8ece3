"""How full a queue in SQS is, and how long its oldest message has waited."""

from datetime import datetime, timedelta
from typing import Any

from compactor.adapters.aws.errors import translated
from compactor.control.snapshot import QueueDepth

_MEASURED_WITHIN = timedelta(minutes=15)
"""SQS measures each minute and reports some minutes late; what is older says nothing of now."""


class SqsQueue:
    """One queue. The age of its oldest message is no attribute of SQS: CloudWatch has it.

    Args:
        sqs: A boto3 client of SQS.
        cloudwatch: A boto3 client of CloudWatch.
        url: The queue's.
    """

    def __init__(self, sqs: Any, cloudwatch: Any, url: str) -> None:
        self._sqs = sqs
        self._cloudwatch = cloudwatch
        self._url = url

    def depth(self) -> QueueDepth:
        waiting, in_flight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        with translated(f"queue {self._url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=[waiting, in_flight])
        found = answer.get("Attributes", {})
        return QueueDepth(int(found[waiting]), int(found[in_flight]))

    def oldest_seconds(self, now: datetime) -> float | None:
        metric = {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": self._url.rpartition("/")[2]}],
        }
        query = {"Id": "age", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
        with translated(f"age of queue {self._url}"):
            answer = self._cloudwatch.get_metric_data(
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

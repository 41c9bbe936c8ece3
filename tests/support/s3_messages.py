"""Messages as S3, SNS and EventBridge write them."""

import json
from typing import Any
from urllib.parse import quote_plus

EVENT_TIME = "2026-01-02T03:04:05.678Z"


def record(bucket: str, key: str, size: int, etag: str, *, time: str = EVENT_TIME) -> dict[str, Any]:
    """One record of a notification; the key is encoded like a form, but for its slashes."""
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-central-1",
        "eventTime": time,
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "AWS:AIDAJDPLRKLG7UEXAMPLE"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "compactor",
            "bucket": {
                "name": bucket,
                "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                "arn": f"arn:aws:s3:::{bucket}",
            },
            "object": {"key": quote_plus(key, safe="/"), "size": size, "eTag": etag, "sequencer": "0055AED6DCD90281E5"},
        },
    }


def notification(bucket: str, key: str, size: int, etag: str, *, time: str = EVENT_TIME) -> str:
    """What S3 sends to a queue."""
    return json.dumps({"Records": [record(bucket, key, size, etag, time=time)]})


def wrapped(message: str) -> str:
    """What a queue gets that is subscribed to a topic."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": "arn:aws:sns:eu-central-1:123456789012:raw",
            "Subject": "Amazon S3 Notification",
            "Message": message,
            "Timestamp": EVENT_TIME,
        }
    )


def bridged(bucket: str, key: str, size: int, etag: str, *, time: str = EVENT_TIME) -> str:
    """What EventBridge passes on; its key is not encoded."""
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": "Object Created",
            "source": "aws.s3",
            "account": "123456789012",
            "time": time,
            "region": "eu-central-1",
            "resources": [f"arn:aws:s3:::{bucket}"],
            "detail": {
                "version": "0",
                "bucket": {"name": bucket},
                "object": {"key": key, "size": size, "etag": etag, "sequencer": "617f08299329d189"},
                "reason": "PutObject",
            },
        }
    )


SHAPES = {
    "s3": notification,
    "sns": lambda *of, **more: wrapped(notification(*of, **more)),
    "topic of topics": lambda *of, **more: wrapped(wrapped(notification(*of, **more))),
    "eventbridge": bridged,
    "eventbridge by sns": lambda *of, **more: wrapped(bridged(*of, **more)),
}

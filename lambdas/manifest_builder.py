"""Turns messages from the queue of S3 events into manifests and pending parts; called by SQS."""

from collections.abc import Mapping
from typing import Any

from compactor.wiring.functions import build_messages


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Process one batch of messages."""
    return build_messages(event)

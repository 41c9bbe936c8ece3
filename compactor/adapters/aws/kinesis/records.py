"""Records as the answers of Kinesis have them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from compactor.core.kinesis.ports import StreamRecord


def record_of(answered: Mapping[str, Any]) -> StreamRecord:
    """A record of an answer."""
    arrived: datetime = answered["ApproximateArrivalTimestamp"]
    return StreamRecord(int(answered["SequenceNumber"]), bytes(answered["Data"]), arrived.astimezone(UTC))

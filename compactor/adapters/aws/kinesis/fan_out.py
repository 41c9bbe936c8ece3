"""Reads a shard by `SubscribeToShard`: enhanced fan-out, with 2 MB/s for each registered consumer."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, pause_before_try
from compactor.adapters.aws.kinesis.records import reading, record_of
from compactor.core.logs.ports import Batch

_BUSY = {"ResourceInUseException", "LimitExceededException"}  # a subscription ended less than 5 seconds ago
_INVALID = "InvalidArgumentException"
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Reads one shard for a consumer.

    Attributes:
        place: The shard, for messages.
    """

    client: Any
    consumer_arn: str
    place: str
    partition_id: str
    sleep: Callable[[float], None] = time.sleep

    def read(self, at: int) -> Generator[Batch]:
        """Yield the events of one subscription, which ends after five minutes; see `Log.read`."""
        with reading(self.place):
            events = self._subscribed(at)
            try:
                for each in events:
                    event = each.get("SubscribeToShardEvent")
                    if event is None:
                        continue
                    is_end = bool(event.get("ChildShards"))
                    records = [record_of(record) for record in event["Records"]]
                    yield Batch(records, event["MillisBehindLatest"] / 1000, is_end)
                    if is_end:
                        return
            finally:
                events.close()

    def _subscribed(self, at: int) -> Any:
        earliest = {"Type": "TRIM_HORIZON"}
        wanted = {"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": str(at)} if at else earliest
        for tried in range(1, _TRIES + 1):
            try:
                answer = self.client.subscribe_to_shard(
                    ConsumerARN=self.consumer_arn, ShardId=self.partition_id, StartingPosition=wanted
                )
            except ClientError as exc:
                code = error_code(exc)
                if code == _INVALID and wanted is not earliest:  # the record is gone
                    wanted = earliest
                    continue
                if code not in _BUSY or tried == _TRIES:
                    raise
                self.sleep(pause_before_try(tried, first_seconds=1.0, longest_seconds=10.0))
            else:
                return answer["EventStream"]
        raise AssertionError("the last try returns or raises")

"""Reads a shard by `GetRecords`, no faster than the limits of a shard, which all of its readers share."""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, pause_before_try
from compactor.adapters.aws.kinesis.records import reading, record_of
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch

_SHARD_BYTES_PER_SECOND = 2 * 1024 * 1024
_CALLS_PER_SECOND = 5
_MOST_RECORDS = 10_000

_THROTTLED = {"ProvisionedThroughputExceededException", "KMSThrottlingException", "LimitExceededException"}
_EXPIRED = "ExpiredIteratorException"
_INVALID = "InvalidArgumentException"


@dataclass(slots=True)
class Pace:
    """How often shards are asked, by whatever readings of this process.

    Attributes:
        call_seconds: The least time between two calls.
        throttled_tries: After so many refusals in a row, throttling is trouble that outlasts this reading.
        sleep: Waits for some seconds.
        now: Tells the seconds.
    """

    call_seconds: float = 1 / _CALLS_PER_SECOND
    throttled_tries: int = 12
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    _free_at: dict[str, float] = field(default_factory=dict)

    def wait(self, place: str) -> None:
        """Wait until a shard may be asked again."""
        pause = self._free_at.get(place, 0.0) - self.now()
        if pause > 0:
            self.sleep(pause)

    def took(self, place: str, length_bytes: int) -> None:
        """Note an answer of a shard, which holds up the next call of any reading."""
        self._free_at[place] = self.now() + max(self.call_seconds, length_bytes / _SHARD_BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Poller:
    """Reads one shard."""

    client: Any
    stream: LogName
    partition_id: str
    pace: Pace

    def read(self, at: int) -> Generator[Batch]:
        """Yield the answers of the shard; see `Log.read`. It ends when an iterator expires."""
        iterator: str | None = self._iterator(at)
        while iterator:
            answer = self._records(iterator)
            if answer is None:
                return
            iterator = answer.get("NextShardIterator")
            records = [record_of(each) for each in answer["Records"]]
            self.pace.took(str(self), sum(len(each.data or b"") for each in records))
            yield Batch(records, answer.get("MillisBehindLatest", 0) / 1000, is_end=iterator is None)

    def _records(self, iterator: str) -> dict[str, Any] | None:
        """One answer; None if the iterator expired."""
        for tried in range(1, self.pace.throttled_tries + 1):
            self.pace.wait(str(self))
            with reading(str(self)):
                try:
                    answer: dict[str, Any] = self.client.get_records(ShardIterator=iterator, Limit=_MOST_RECORDS)
                except ClientError as exc:
                    if error_code(exc) == _EXPIRED:
                        return None
                    if error_code(exc) not in _THROTTLED or tried == self.pace.throttled_tries:
                        raise
                else:
                    return answer
            self.pace.sleep(pause_before_try(tried, first_seconds=2 * self.pace.call_seconds))
        raise AssertionError("the last try returns or raises")

    def _iterator(self, at: int) -> str:
        earliest = {"ShardIteratorType": "TRIM_HORIZON"}
        wanted = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": str(at)} if at else earliest
        place = {"StreamName": self.stream.name, "ShardId": self.partition_id}
        with reading(str(self)):
            try:
                answer = self.client.get_shard_iterator(**place, **wanted)
            except ClientError as exc:
                if not at or error_code(exc) != _INVALID:
                    raise
                answer = self.client.get_shard_iterator(**place, **earliest)  # the record is gone
        return str(answer["ShardIterator"])

    def __str__(self) -> str:
        return f"{self.stream}/{self.partition_id}"

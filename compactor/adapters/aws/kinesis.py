"""Kinesis streams on AWS: a `compactor.core.logs.ports.Log`. A shard is polled, or read by enhanced fan-out."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, pause_before_try, translated
from compactor.core.errors import SettingsError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LAST_HASH, Batch, LiveLog, LogRecord, Partition

_SHARD_BYTES_PER_SECOND = 2 * 1024 * 1024
_CALLS_PER_SECOND = 5
_MOST_RECORDS = 10_000
_SUBSCRIBE_TRIES = 8

_NOT_FOUND = "ResourceNotFoundException"
_EXPIRED = "ExpiredIteratorException"
_INVALID = "InvalidArgumentException"  # for a sequence number: the record no longer exists
_THROTTLED = {"ProvisionedThroughputExceededException", "KMSThrottlingException", "LimitExceededException"}
_BUSY = {"ResourceInUseException", "LimitExceededException"}  # a subscription ended less than 5 seconds ago


@dataclass(slots=True)
class Pace:
    """Limits how often all readers in this process call each shard.

    Attributes:
        call_seconds: The minimum time between two calls.
        throttled_tries: How many throttled calls in a row fail a read.
    """

    call_seconds: float = 1 / _CALLS_PER_SECOND
    throttled_tries: int = 12
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    _free_at: dict[str, float] = field(default_factory=dict)

    def wait(self, place: str) -> None:
        """Wait until a shard may be called again."""
        pause = self._free_at.get(place, 0.0) - self.now()
        if pause > 0:
            self.sleep(pause)

    def took(self, place: str, length_bytes: int) -> None:
        """Note the length of a shard's response, which delays its next call."""
        self._free_at[place] = self.now() + max(self.call_seconds, length_bytes / _SHARD_BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Source:
    """How to reach a source's streams.

    Attributes:
        consumer: A registered consumer's name, for enhanced fan-out; empty to poll.
    """

    client: Any
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class KinesisStreams:
    """The streams of the sources in the settings."""

    sources: Mapping[str, Source]
    pace: Pace = field(default_factory=Pace)

    def describe(self, log: LogName) -> LiveLog | None:
        found = self._described(log)
        if found is None:
            return None
        _, _, _, region, account, _ = str(found["StreamARN"]).split(":", 5)
        created = found["StreamCreationTimestamp"].astimezone(UTC)
        retention = timedelta(hours=found.get("RetentionPeriodHours") or 24)
        return LiveLog(f"{account}-{region}-{created:%Y%m%dT%H%M%S.%f}", retention)

    def partitions(self, log: LogName) -> list[Partition]:
        client, found = self._source(log).client, list[Partition]()
        wanted: dict[str, str] = {"StreamName": log.name}
        while wanted:
            with translated(str(log)):
                answer = client.list_shards(**wanted)
            found += [_shard(each) for each in answer["Shards"]]
            token = answer.get("NextToken")
            wanted = {"NextToken": token} if token else {}
        return found

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:  # noqa: ARG002
        source = self._source(log)
        if not source.consumer:
            return self._polled(log, partition_id, at)
        arn = self._consumer_arn(log, source)
        return _subscribed(source.client, arn, f"{log}/{partition_id}", partition_id, at, self.pace.sleep)

    def _source(self, stream: LogName) -> Source:
        try:
            return self.sources[stream.source]
        except KeyError:
            raise SettingsError([f"kinesis.sources: expected {stream.source}, as named in {stream}"]) from None

    def _described(self, stream: LogName) -> dict[str, Any] | None:
        client = self._source(stream).client
        found = _unless_missing(str(stream), lambda: client.describe_stream_summary(StreamName=stream.name))
        return found and found["StreamDescriptionSummary"]

    def _consumer_arn(self, stream: LogName, source: Source) -> str:
        described = self._described(stream)
        found = described and _unless_missing(
            str(stream),
            lambda: source.client.describe_stream_consumer(
                StreamARN=described["StreamARN"], ConsumerName=source.consumer
            ),
        )
        if found is None:
            where = f"kinesis.sources.{stream.source}.consumer: {source.consumer!r}"
            raise SettingsError([f"{where} -> expected a consumer of {stream}"])
        return str(found["ConsumerDescription"]["ConsumerARN"])

    def _polled(self, log: LogName, partition_id: str, at: int) -> Generator[Batch]:
        """Read a shard with `GetRecords`, no faster than its limits, until an iterator expires."""
        client, place = self._source(log).client, f"{log}/{partition_id}"
        iterator: str | None = _iterator(client, place, {"StreamName": log.name, "ShardId": partition_id}, at)
        while iterator:
            answer = self._records(client, place, iterator)
            if answer is None:
                return
            iterator = answer.get("NextShardIterator")
            records = [_record(each) for each in answer["Records"]]
            self.pace.took(place, sum(len(each.data or b"") for each in records))
            yield Batch(records, answer.get("MillisBehindLatest", 0) / 1000, is_end=iterator is None)

    def _records(self, client: Any, place: str, iterator: str) -> dict[str, Any] | None:
        """One response; None if the iterator expired."""
        for tried in range(1, self.pace.throttled_tries + 1):
            self.pace.wait(place)
            with _reading(place):
                try:
                    answer: dict[str, Any] = client.get_records(ShardIterator=iterator, Limit=_MOST_RECORDS)
                except ClientError as exc:
                    if error_code(exc) == _EXPIRED:
                        return None
                    if error_code(exc) not in _THROTTLED or tried == self.pace.throttled_tries:
                        raise
                else:
                    return answer
            self.pace.sleep(pause_before_try(tried, first_seconds=2 * self.pace.call_seconds))
        raise AssertionError("the last try returns or raises")


def _iterator(client: Any, place: str, shard: Mapping[str, str], at: int) -> str:
    earliest = {"ShardIteratorType": "TRIM_HORIZON"}
    wanted = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": str(at)} if at else earliest
    with _reading(place):
        try:
            answer = client.get_shard_iterator(**shard, **wanted)
        except ClientError as exc:
            if not at or error_code(exc) != _INVALID:
                raise
            answer = client.get_shard_iterator(**shard, **earliest)
    return str(answer["ShardIterator"])


def _subscribed(
    client: Any, consumer_arn: str, place: str, partition_id: str, at: int, sleep: Callable[[float], None]
) -> Generator[Batch]:
    """Read a shard with `SubscribeToShard`, with 2 MB/s per consumer. A subscription ends after five minutes."""
    with _reading(place):
        events = _subscription(client, consumer_arn, partition_id, at, sleep)
        try:
            for each in events:
                event = each.get("SubscribeToShardEvent")
                if event is None:
                    continue
                is_end = bool(event.get("ChildShards"))
                yield Batch([_record(each) for each in event["Records"]], event["MillisBehindLatest"] / 1000, is_end)
                if is_end:
                    return
        finally:
            events.close()


def _subscription(client: Any, consumer_arn: str, partition_id: str, at: int, sleep: Callable[[float], None]) -> Any:
    earliest = {"Type": "TRIM_HORIZON"}
    wanted = {"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": str(at)} if at else earliest
    for tried in range(1, _SUBSCRIBE_TRIES + 1):
        try:
            answer = client.subscribe_to_shard(ConsumerARN=consumer_arn, ShardId=partition_id, StartingPosition=wanted)
        except ClientError as exc:
            code = error_code(exc)
            if code == _INVALID and wanted is not earliest:
                wanted = earliest
                continue
            if code not in _BUSY or tried == _SUBSCRIBE_TRIES:
                raise
            sleep(pause_before_try(tried, first_seconds=1.0, longest_seconds=10.0))
        else:
            return answer["EventStream"]
    raise AssertionError("the last try returns or raises")


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Translate errors of a shard. A shard that disappeared after it was listed is a transient failure."""
    with translated(place):
        try:
            yield
        except ClientError as exc:
            if error_code(exc) == _NOT_FOUND:
                raise StoreUnavailable(f"{place}: disappeared after it was listed") from exc
            raise


def _unless_missing(place: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """The response; None if there is no such stream or consumer."""
    with translated(place):
        try:
            return ask()
        except ClientError as exc:
            if error_code(exc) == _NOT_FOUND:
                return None
            raise


def _record(answered: Mapping[str, Any]) -> LogRecord:
    arrived: datetime = answered["ApproximateArrivalTimestamp"]
    return LogRecord(int(answered["SequenceNumber"]), bytes(answered["Data"]), arrived.astimezone(UTC))


def _shard(described: Mapping[str, Any]) -> Partition:
    parents = [described.get("ParentShardId"), described.get("AdjacentParentShardId")]
    hashes = described.get("HashKeyRange", {})
    return Partition(
        partition_id=described["ShardId"],
        parents=tuple(each for each in parents if each),
        first_hash=int(hashes.get("StartingHashKey", 0)),
        last_hash=int(hashes.get("EndingHashKey", LAST_HASH)),
        is_closed="EndingSequenceNumber" in described.get("SequenceNumberRange", {}),
    )

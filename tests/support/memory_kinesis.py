"""Streams of Kinesis in memory: a client as boto3 makes them, which refuses what Kinesis refuses."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import md5
from threading import RLock
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.kinesis import KinesisStreams, Pace, Source
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LAST_HASH
from tests.support.memory_store import ManualClock

STREAM = LogName("kinesis", "main", "events")

ITERATOR_LIFE = timedelta(minutes=5)
CALLS_PER_SECOND = 5
BYTES_PER_SECOND = 2 * 1024 * 1024


@dataclass
class MemoryRecord:
    """One record."""

    sequence: int
    data: bytes
    arrived_at: datetime


@dataclass
class MemoryShard:
    """One shard. A closed one is listed for the retention, as its records are."""

    partition_id: str
    first_hash: int
    last_hash: int
    parents: tuple[str, ...] = ()
    records: list[MemoryRecord] = field(default_factory=list)
    closed_at: datetime | None = None
    calls: list[datetime] = field(default_factory=list)
    busy_until: datetime | None = None


class MemoryKinesis:
    """Streams of one account and region, with a client's calls, of which those of reading have the limits of Kinesis.

    Args:
        clock: Retention, iterators and limits go by it.
        limits: Whether calls are refused that are too many. A manual clock does not move between calls.
    """

    def __init__(self, clock: ManualClock, *, limits: bool = False) -> None:
        self.clock = clock
        self.limits = limits
        self.retention = timedelta(hours=24)
        self.page = 100  # shards of one answer
        self.most_records = 10_000
        self.streams: dict[str, tuple[datetime, dict[str, MemoryShard]]] = {}
        self.refusals: list[str] = []  # codes that the next calls of reading are answered with
        self.empty_answers = 0  # how many answers without records come before those with some
        self.tells_end_apart = False  # whether the end of a shard is told by an answer of its own, without records
        self.called: list[str] = []
        self._sequence = 0
        self._lock = RLock()

    def log(self, *, consumer: str = "") -> KinesisStreams:
        """The adapter on these streams, which moves the clock where it waits."""
        sleep = self.clock.advance if self.limits else lambda _: None
        pace = Pace(sleep=sleep, now=lambda: self.clock.now().timestamp())
        return KinesisStreams({"main": Source(self, consumer)}, pace)

    # What a test does as the producer and the owner of the stream.

    def create(self, name: str = STREAM.name, shards: int = 1) -> list[str]:
        """Make a stream, in place of any of its name; returns the ids of its shards."""
        step = (LAST_HASH + 1) // shards
        made = [
            MemoryShard(f"shardId-{at:012d}", at * step, (at + 1) * step - 1 if at < shards - 1 else LAST_HASH)
            for at in range(shards)
        ]
        self.streams[name] = (self.clock.now(), {each.partition_id: each for each in made})
        return [each.partition_id for each in made]

    def put(self, *values: bytes, shard: str = "", name: str = STREAM.name) -> list[int]:
        """Add records to a shard, by default each to the open one of its hash; returns their sequence numbers."""
        with self._lock:
            return [self._put(value, shard, name) for value in values]

    def _put(self, value: bytes, partition_id: str, name: str) -> int:
        shards = self.streams[name][1]
        key = int.from_bytes(md5(value, usedforsecurity=False).digest())
        found = shards[partition_id] if partition_id else next(each for each in shards.values() if _takes(each, key))
        if found.closed_at is not None:
            raise _refusal("ResourceNotFoundException", "PutRecord")
        self._sequence += 7
        found.records.append(MemoryRecord(self._sequence, value, self.clock.now()))
        return self._sequence

    def split(self, partition_id: str, name: str = STREAM.name) -> list[str]:
        """Split a shard in the middle; returns the ids of its children."""
        with self._lock:
            shard = self._open(name, partition_id)
            middle = (shard.first_hash + shard.last_hash) // 2
            bounds = [(shard.first_hash, middle), (middle + 1, shard.last_hash)]
            return [self._child(name, first, last, (partition_id,)) for first, last in bounds]

    def merge(self, one: str, other: str, name: str = STREAM.name) -> str:
        """Merge two shards beside each other; returns the id of their child."""
        with self._lock:
            low, high = sorted((self._open(name, one), self._open(name, other)), key=lambda each: each.first_hash)
            if low.last_hash + 1 != high.first_hash:
                raise _refusal("InvalidArgumentException", "MergeShards")
            return self._child(name, low.first_hash, high.last_hash, (one, other))

    def _open(self, name: str, partition_id: str) -> MemoryShard:
        found = self.streams[name][1][partition_id]
        if found.closed_at is not None:
            raise _refusal("InvalidArgumentException", "SplitShard")
        return found

    def _child(self, name: str, first: int, last: int, parents: tuple[str, ...]) -> str:
        shards = self.streams[name][1]
        for each in parents:
            shards[each].closed_at = self.clock.now()
        child = MemoryShard(f"shardId-{len(shards):012d}", first, last, parents)
        shards[child.partition_id] = child
        return child.partition_id

    # What boto3's client does.

    def describe_stream_summary(self, **asked: str) -> dict[str, Any]:
        name = asked["StreamName"]
        created, _ = self._found(name, "DescribeStreamSummary")
        arn = f"arn:aws:kinesis:eu-central-1:123456789012:stream/{name}"
        hours = int(self.retention.total_seconds() // 3600)
        described = {"StreamARN": arn, "StreamCreationTimestamp": created, "RetentionPeriodHours": hours}
        return {"StreamDescriptionSummary": described}

    def describe_stream_consumer(self, **asked: str) -> dict[str, Any]:
        name = asked["ConsumerName"]
        if name != "reader":
            raise _refusal("ResourceNotFoundException", "DescribeStreamConsumer")
        return {"ConsumerDescription": {"ConsumerARN": f"{asked['StreamARN']}/consumer/{name}:1"}}

    def list_shards(self, **asked: str) -> dict[str, Any]:
        name, _, start = asked.get("NextToken", f"{asked.get('StreamName')}:0").partition(":")
        first = int(start)
        with self._lock:
            _, shards = self._found(name, "ListShards")
            kept = [each for each in shards.values() if not self._is_forgotten(each)]
        page = {"Shards": [_listed(each) for each in kept[first : first + self.page]]}
        return {**page, "NextToken": f"{name}:{first + self.page}"} if len(kept) > first + self.page else page

    def get_shard_iterator(self, **asked: str) -> dict[str, Any]:
        name, partition_id, kind = asked["StreamName"], asked["ShardId"], asked["ShardIteratorType"]
        self.called.append(kind)
        self._refuse("GetShardIterator")
        self._shard(name, partition_id, "GetShardIterator")
        if kind not in {"AT_SEQUENCE_NUMBER", "TRIM_HORIZON"}:
            raise _refusal("InvalidArgumentException", "GetShardIterator")
        at = int(asked.get("StartingSequenceNumber", 0))
        return {"ShardIterator": self._iterator(name, partition_id, at)}

    def get_records(self, **asked: Any) -> dict[str, Any]:
        self.called.append("GetRecords")
        name, partition_id, at, made = asked["ShardIterator"].split("|")
        self._refuse("GetRecords")
        now = self.clock.now()
        if now - datetime.fromisoformat(made) > ITERATOR_LIFE:
            raise _refusal("ExpiredIteratorException", "GetRecords")
        with self._lock:
            shard = self._shard(name, partition_id, "GetRecords")
            self._limit(shard, now)
            kept, found = self._kept(shard), list[MemoryRecord]()
            if self.empty_answers:
                self.empty_answers -= 1
                return {**_answered([], behind=1.0), "NextShardIterator": self._iterator(name, partition_id, int(at))}
            for record in kept:
                if record.sequence >= int(at) and len(found) < min(asked["Limit"], self.most_records):
                    found.append(record)
            length = sum(len(each.data) for each in found)
            if self.limits and length > BYTES_PER_SECOND:
                shard.busy_until = now + timedelta(seconds=length / BYTES_PER_SECOND)
            follows = found[-1].sequence + 1 if found else int(at)
            is_last = not any(each.sequence >= follows for each in kept)
            behind = 0.0 if is_last else (now - found[-1].arrived_at).total_seconds() + 1.0
            answer = _answered(found, behind)
            if is_last and shard.closed_at is not None and not (found and self.tells_end_apart):
                children = [each for each in self.streams[name][1].values() if partition_id in each.parents]
                return {**answer, "ChildShards": [{"ShardId": each.partition_id} for each in children]}
            return {**answer, "NextShardIterator": self._iterator(name, partition_id, follows)}

    def subscribe_to_shard(self, **asked: Any) -> dict[str, Any]:
        self.called.append("SubscribeToShard")
        self._refuse("SubscribeToShard")
        name, at = asked["ConsumerARN"].split("/")[1], int(asked["StartingPosition"].get("SequenceNumber", 0))
        self._shard(name, asked["ShardId"], "SubscribeToShard")
        return {"EventStream": _Events(self._events(name, asked["ShardId"], at))}

    def _events(self, name: str, partition_id: str, at: int) -> Iterator[dict[str, Any]]:
        ends_at = self.clock.now() + ITERATOR_LIFE
        iterator = self._iterator(name, partition_id, at)
        while self.clock.now() < ends_at:
            answer = self.get_records(ShardIterator=iterator, Limit=self.most_records)
            yield {"SubscribeToShardEvent": {**answer, "ContinuationSequenceNumber": "1"}}
            if "NextShardIterator" not in answer:
                return
            iterator = answer["NextShardIterator"]

    def _refuse(self, operation: str) -> None:
        if self.refusals:
            raise _refusal(self.refusals.pop(0), operation)

    def _limit(self, shard: MemoryShard, now: datetime) -> None:
        if not self.limits:
            return
        shard.calls = [each for each in shard.calls if (now - each).total_seconds() < 1.0]
        is_busy = shard.busy_until is not None and now < shard.busy_until
        if is_busy or len(shard.calls) >= CALLS_PER_SECOND:
            raise _refusal("ProvisionedThroughputExceededException", "GetRecords")
        shard.calls.append(now)

    def _kept(self, shard: MemoryShard) -> list[MemoryRecord]:
        oldest = self.clock.now() - self.retention
        shard.records = [each for each in shard.records if each.arrived_at >= oldest]
        return shard.records

    def _is_forgotten(self, shard: MemoryShard) -> bool:
        return shard.closed_at is not None and shard.closed_at < self.clock.now() - self.retention

    def _iterator(self, name: str, partition_id: str, at: int) -> str:
        return f"{name}|{partition_id}|{at}|{self.clock.now().isoformat()}"

    def _found(self, name: str, operation: str) -> tuple[datetime, dict[str, MemoryShard]]:
        if name not in self.streams:
            raise _refusal("ResourceNotFoundException", operation)
        return self.streams[name]

    def _shard(self, name: str, partition_id: str, operation: str) -> MemoryShard:
        shard = self._found(name, operation)[1].get(partition_id)
        if shard is None or self._is_forgotten(shard):
            raise _refusal("ResourceNotFoundException", operation)
        return shard


class _Events(Iterator[dict[str, Any]]):
    """Events of a subscription, which may be closed."""

    def __init__(self, events: Iterator[dict[str, Any]]) -> None:
        self._events = events
        self.body = io.BytesIO()

    def __next__(self) -> dict[str, Any]:
        return next(self._events)

    def close(self) -> None:
        self.body.close()


def _takes(shard: MemoryShard, key: int) -> bool:
    return shard.closed_at is None and shard.first_hash <= key <= shard.last_hash


def _answered(records: Sequence[MemoryRecord], behind: float) -> dict[str, Any]:
    found = [
        {"SequenceNumber": str(each.sequence), "Data": each.data, "ApproximateArrivalTimestamp": each.arrived_at}
        for each in records
    ]
    return {"Records": found, "MillisBehindLatest": int(behind * 1000)}


def _listed(shard: MemoryShard) -> dict[str, Any]:
    hashes = {"StartingHashKey": str(shard.first_hash), "EndingHashKey": str(shard.last_hash)}
    names = zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False)
    sequences = {"StartingSequenceNumber": "1"}
    if shard.closed_at is not None:
        sequences["EndingSequenceNumber"] = str(max((each.sequence for each in shard.records), default=1))
    return {"ShardId": shard.partition_id, "HashKeyRange": hashes, "SequenceNumberRange": sequences, **dict(names)}


def _refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "as Kinesis does"}}, operation)

"""What every `Log` does: one suite, in memory, by enhanced fan-out, on moto and on a server from npm."""

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest

from compactor.adapters.aws.kinesis import KinesisStreams, Pace, Source
from compactor.adapters.memory.store import ManualClock
from compactor.core.errors import SettingsError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, Log, LogRecord
from tests.support.extras import KINESIS
from tests.support.fan_out_server import FanOutServer
from tests.support.kinesis_server import KinesisServer, create_stream, delete_stream, kinesis_client, until_active
from tests.support.memory_kinesis import STREAM, MemoryKinesis

LIMIT_BYTES = 1_000_000


@dataclass(frozen=True)
class Case:
    """A log with a stream of two shards."""

    name: str
    log: Log
    stream: LogName
    put: Callable[[str, bytes], object]  # into a shard
    split: Callable[[str], object]
    merge: Callable[[str, str], object]
    make_again: Callable[[], object]

    @property
    def keeps_records(self) -> bool:
        """Whether a shard that was split or merged keeps its records and ends: on moto it does not."""
        return self.name != "moto"

    def read(self, partition_id: str, at: int = 0) -> tuple[list[LogRecord], Batch]:
        """All records of a shard from one on, and the answer at its tip or end."""
        records = list[LogRecord]()
        reading = self.log.read(self.stream, partition_id, at, LIMIT_BYTES)
        for batch in reading:
            records += batch.records
            if batch.is_end or not (batch.records or batch.behind_seconds):
                break
        reading.close()
        return records, batch


def memory_case(name: str, url: Callable[[MemoryKinesis], str] | None = None) -> Case:
    kinesis = MemoryKinesis(ManualClock())
    kinesis.most_records, kinesis.page = 2, 1
    kinesis.create(shards=2)

    def make_again() -> None:
        kinesis.clock.advance(60)
        kinesis.create(shards=2)

    log = kinesis.log(consumer="reader" if name == "fan-out" else "")
    if url is not None:
        log = KinesisStreams({"main": Source(kinesis_client(url(kinesis)), "reader")})
    return Case(
        name,
        log,
        STREAM,
        put=lambda shard, value: kinesis.put(value, shard=shard),
        split=kinesis.split,
        merge=kinesis.merge,
        make_again=make_again,
    )


def server_case(name: str, url: str) -> Case:
    client: Any = kinesis_client(url)
    stream = LogName("kinesis", "main", f"events-{uuid.uuid4().hex}")
    create_stream(client, stream.name, 2)
    log = KinesisStreams({"main": Source(client)}, Pace(call_seconds=0.0))

    def hashes(partition_id: str) -> tuple[int, int]:
        [found] = [each for each in log.partitions(stream) if each.partition_id == partition_id]
        return found.first_hash, found.last_hash

    def put(partition_id: str, value: bytes) -> None:
        client.put_record(
            StreamName=stream.name, Data=value, PartitionKey="key", ExplicitHashKey=str(hashes(partition_id)[0])
        )

    def split(partition_id: str) -> None:
        middle = str(sum(hashes(partition_id)) // 2)
        client.split_shard(StreamName=stream.name, ShardToSplit=partition_id, NewStartingHashKey=middle)
        until_active(client, stream.name)

    def merge(one: str, other: str) -> None:
        client.merge_shards(StreamName=stream.name, ShardToMerge=one, AdjacentShardToMerge=other)
        until_active(client, stream.name)

    def make_again() -> None:
        delete_stream(client, stream.name)
        create_stream(client, stream.name, 2)

    return Case(name, log, stream, put, split, merge, make_again)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KinesisServer]:
    KINESIS.need()
    with KinesisServer(tmp_path_factory.mktemp("kinesis")) as found:
        yield found


CASES = ["memory", "fan-out", "fan-out over http", "moto", "npm"]

# Only the server from npm keeps the records of a shard that was split, and it takes seconds to start.
without_npm = pytest.mark.parametrize(
    "case", [*CASES[:-1], pytest.param(CASES[-1], marks=pytest.mark.full)], indirect=True
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    with ExitStack() as stack:

        def served(kinesis: MemoryKinesis) -> str:
            return stack.enter_context(FanOutServer(kinesis)).url

        yield made_case(request, served)


def made_case(request: pytest.FixtureRequest, served: Callable[[MemoryKinesis], str]) -> Case:
    if request.param == "fan-out over http":
        return memory_case(request.param, served)
    if request.param in {"memory", "fan-out"}:
        return memory_case(request.param)
    of_moto = request.param == "moto"
    return server_case(
        request.param, request.getfixturevalue("aws_endpoint") if of_moto else request.getfixturevalue("server").url
    )


@without_npm
def test_streams(case: Case) -> None:
    """One that is there has an id, and another one once it was made again; one that is not there is None."""
    first = case.log.describe(case.stream)
    assert first is not None
    assert "/" not in first.log_id
    assert case.log.describe(case.stream) == first
    assert case.log.describe(LogName("kinesis", "main", "none")) is None
    with pytest.raises(SettingsError, match=r"kinesis\.sources: expected other"):
        case.log.describe(LogName("kinesis", "other", "events"))
    case.make_again()
    assert case.log.describe(case.stream) not in {None, first}


def test_records_of_a_shard(case: Case) -> None:
    """In order, from the beginning or from one on, and none of another shard; then answers without any."""
    [one, other] = [each.partition_id for each in case.log.partitions(case.stream)]
    for value in (b"a", b"b", b"", b"\x00\xff", b"e"):
        case.put(one, value)
    case.put(other, b"x")
    records, tip = case.read(one)
    assert [each.data for each in records] == [b"a", b"b", b"", b"\x00\xff", b"e"]
    assert (tip.is_end, tip.behind_seconds) == (False, 0.0)
    numbers = [each.position for each in records]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0
    assert all(each.arrived_at and each.arrived_at.tzinfo for each in records)
    assert [each.data for each in case.read(one, numbers[2])[0]] == [b"", b"\x00\xff", b"e"]
    assert [each.data for each in case.read(other)[0]] == [b"x"]


def test_split_and_merged_shards(case: Case) -> None:
    """Children name their parents, divide the hashes among them, and parents end."""
    [one, other] = [each.partition_id for each in case.log.partitions(case.stream)]
    case.put(one, b"before")
    case.split(one)
    shards = case.log.partitions(case.stream)
    low, high = sorted((each for each in shards if each.parents == (one,)), key=lambda each: each.first_hash)
    assert low.last_hash + 1 == high.first_hash
    case.put(low.partition_id, b"low")
    case.merge(high.partition_id, other)
    shards = case.log.partitions(case.stream)
    [child] = [each for each in shards if set(each.parents) == {high.partition_id, other}]
    assert (child.first_hash, child.last_hash) == (high.first_hash, 2**128 - 1)
    assert len(shards) == 5
    case.put(child.partition_id, b"child")
    if case.keeps_records:
        assert [[each.data for each in case.read(shard)[0]] for shard in (one, low.partition_id)] == [
            [b"before"],
            [b"low"],
        ]
        assert [case.read(shard)[1].is_end for shard in (one, high.partition_id, other)] == [True, True, True]
        found, tip = case.read(child.partition_id)
        assert ([each.data for each in found], tip.is_end) == ([b"child"], False)


@without_npm
def test_a_shard_that_is_not_there(case: Case) -> None:
    """It may have been listed a moment ago, so the next plan has to find out."""
    with pytest.raises(StoreUnavailable, match="gone since it was listed"):
        case.read("shardId-000000000099")


def limited(*, consumer: str = "") -> tuple[MemoryKinesis, Log]:
    """A stream whose limits hold: the clock moves only where the adapter waits."""
    kinesis = MemoryKinesis(ManualClock(), limits=True)
    kinesis.create()
    return kinesis, kinesis.log(consumer=consumer)


def test_the_limits_of_a_shard_are_kept() -> None:
    """Five calls and 2 MiB a second: no call is refused."""
    kinesis, log = limited()
    kinesis.most_records = 1
    kinesis.put(*[b"x" * 1_000_000] * 5, *[b"y"] * 20)
    began = kinesis.clock.now()
    batches = list(
        itertools.takewhile(lambda each: each.records, log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES))
    )
    assert sum(len(each.records) for each in batches) == 25
    seconds = (kinesis.clock.now() - began).total_seconds()
    assert 5 * 1_000_000 / (2 * 1024 * 1024) < seconds < 30
    assert kinesis.called.count("GetRecords") == 26


def test_readings_of_a_shard_share_its_limits() -> None:
    """Also readings that end after one answer, as those of a large backlog do."""
    kinesis, log = limited()
    kinesis.most_records = 1
    kinesis.put(*[b"x" * 1_000_000] * 4, *[b"y"] * 10)
    began, at = kinesis.clock.now(), 0
    for _ in range(14):
        with closing(log.read(STREAM, "shardId-000000000000", at, LIMIT_BYTES)) as batches:
            at = next(batches).records[0].position + 7
    assert (kinesis.clock.now() - began).total_seconds() == pytest.approx(4_000_000 / (2 * 1024 * 1024) + 9 * 0.2)
    assert kinesis.called.count("GetRecords") == 14


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "KMSThrottlingException"])
def test_throttling_is_waited_for(code: str) -> None:
    """With pauses that grow; what does not end is passing trouble."""
    kinesis, log = limited()
    kinesis.put(b"x")
    began = kinesis.clock.now()
    reading = log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)
    kinesis.refusals = []
    next(reading)
    kinesis.refusals = [code] * 6
    next(reading)
    assert (kinesis.clock.now() - began).total_seconds() > 3
    kinesis.refusals = [code] * 100
    with pytest.raises(StoreUnavailable):
        next(reading)


def test_an_expired_iterator_ends_a_reading() -> None:
    """The caller goes on from the last record."""
    kinesis, log = limited()
    kinesis.put(b"x")
    reading = log.read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)
    next(reading)
    kinesis.clock.advance(301)
    assert list(reading) == []


def test_a_record_that_is_gone() -> None:
    """Reading begins at the earliest one that is left, whether Kinesis refuses the sequence number or not."""
    kinesis, log = limited()
    [gone] = kinesis.put(b"gone")
    kinesis.clock.advance(86_401)
    kinesis.put(b"left")
    batch = next(log.read(STREAM, "shardId-000000000000", gone, LIMIT_BYTES))
    assert [each.data for each in batch.records] == [b"left"]
    kinesis.refusals = ["InvalidArgumentException"]
    batch = next(log.read(STREAM, "shardId-000000000000", gone, LIMIT_BYTES))
    assert [each.data for each in batch.records] == [b"left"]
    assert kinesis.called[-2] == "TRIM_HORIZON"


def test_a_consumer() -> None:
    """Of enhanced fan-out: it subscribes again while a former subscription ends; one that is not there is told."""
    kinesis, log = limited(consumer="reader")
    kinesis.limits = False
    kinesis.put(b"x")
    kinesis.refusals = ["InvalidArgumentException"]
    assert next(log.read(STREAM, "shardId-000000000000", 5, LIMIT_BYTES)).records[0].data == b"x"
    assert "SubscribeToShard" in kinesis.called
    with pytest.raises(SettingsError, match="expected a consumer of"):
        kinesis.log(consumer="other").read(STREAM, "shardId-000000000000", 0, LIMIT_BYTES)

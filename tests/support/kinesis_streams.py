"""A producer of a stream on a server of tests, which keeps a log of what it wrote, and changes the shards meanwhile."""

import json
import random
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

from compactor.core.logs.names import LogName
from tests.support.kinesis_server import REGION, create_stream, kinesis_client, until_active
from tests.support.kpl import aggregated

SOURCE = "main"
ID = "id"

_MOST_SHARDS = 6


@dataclass
class StreamFeed:
    """Writes a stream.

    Attributes:
        url: The server.
        name: Of the stream.
        written: The ids of all records that the stream took; of packed ones, of each that was packed.
        records: How many records that is, as the stream counts them.
    """

    url: str
    name: str
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    written: list[str] = field(default_factory=list)
    records: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.client: Any = kinesis_client(self.url)

    @property
    def stream(self) -> LogName:
        """Its name for planners."""
        return LogName("kinesis", SOURCE, self.name)

    def create(self, shards: int) -> None:
        """Make the stream."""
        create_stream(self.client, self.name, shards)

    def send(self, *values: bytes) -> None:
        """Add values that are in no log."""
        for value in values:
            self.client.put_record(StreamName=self.name, Data=value, PartitionKey=str(self.chance.random()))

    def produce(self, records: int, *, packed: int = 0) -> None:
        """Add so many records, and so many of ten packed ones each, in requests of up to a hundred.

        Raises:
            RuntimeError: The stream did not take one.
        """
        entries = [self._entry(1) for _ in range(records)] + [self._entry(10) for _ in range(packed)]
        self.chance.shuffle(entries)
        for at in range(0, len(entries), 100):
            part = entries[at : at + 100]
            answer = self.client.put_records(StreamName=self.name, Records=[each for _, each in part])
            if answer.get("FailedRecordCount"):
                raise RuntimeError(f"{answer['FailedRecordCount']} records were not taken")
            self.written += [name for names, _ in part for name in names]
            self.records += len(part)

    def _entry(self, size: int) -> tuple[list[str], dict[str, Any]]:
        names = [f"{self.name}-{self.chance.getrandbits(64):016x}" for _ in range(size)]
        values = [json.dumps({ID: each, "padding": "x" * 40}).encode() for each in names]
        key = names[0]
        data = values[0] if size == 1 else aggregated([(key, value) for value in values])
        return names, {"Data": data, "PartitionKey": key}

    def open_shards(self) -> list[dict[str, Any]]:
        """The shards that take records, in the order of their hashes."""
        found = self.client.list_shards(StreamName=self.name)
        shards = list(found["Shards"])
        while found.get("NextToken"):
            found = self.client.list_shards(NextToken=found["NextToken"])
            shards += found["Shards"]
        is_open = [each for each in shards if "EndingSequenceNumber" not in each["SequenceNumberRange"]]
        return sorted(is_open, key=lambda each: int(each["HashKeyRange"]["StartingHashKey"]))

    def reshard(self) -> None:
        """Split a shard, or merge two beside each other."""
        shards = self.open_shards()
        at = self.chance.randrange(len(shards))
        if len(shards) > 1 and (len(shards) >= _MOST_SHARDS or self.chance.random() < 0.4):
            one, other = (shards[min(at, len(shards) - 2) + step]["ShardId"] for step in (0, 1))
            self.client.merge_shards(StreamName=self.name, ShardToMerge=one, AdjacentShardToMerge=other)
        else:
            hashes = shards[at]["HashKeyRange"]
            middle = (int(hashes["StartingHashKey"]) + int(hashes["EndingHashKey"])) // 2
            self.client.split_shard(
                StreamName=self.name, ShardToSplit=shards[at]["ShardId"], NewStartingHashKey=str(middle)
            )
        until_active(self.client, self.name)

    def producing(self) -> "Producing":
        """A thread that goes on producing while the block runs."""
        return Producing(self)


class Producing:
    """Load: see `StreamFeed.producing`. What goes wrong in its thread is raised at the end of the block."""

    def __init__(self, feed: StreamFeed) -> None:
        self._feed, self._stop, self._errors = feed, Event(), list[BaseException]()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join()
        for error in self._errors:
            raise error

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.05):
                self._feed.produce(20, packed=2)
        except BaseException as exc:  # noqa: BLE001 - it is raised in the thread of the test
            self._errors.append(exc)


def kinesis_settings(url: str, **more: Any) -> dict[str, Any]:
    """The sections of settings for streams on a server."""
    return {
        "input": {"allowed_prefixes": [f"kinesis://{SOURCE}"]},
        "kinesis": {"sources": {SOURCE: {"region": REGION, "endpoint_url": url}}},
        "schema": {"metadata_columns": ["_source_file", "_manifest_id"]},
        **more,
    }

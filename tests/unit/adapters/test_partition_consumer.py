"""The reading of a partition with a client that is scripted: what counts as progress."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from compactor.adapters.kafka import partition_consumer
from compactor.adapters.kafka.partition_consumer import PartitionConsumer
from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogName

TOPIC = LogName("kafka", "main", "events")
END = 1_000


class Clock:
    """The time, which passes while a poll waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class EndOfPartition:
    """The message of a client at the end of a partition."""

    def error(self) -> "EndOfPartition":
        return self

    def code(self) -> int:
        return partition_consumer.END_OF_PARTITION

    def offset(self) -> int:
        return END


class ScriptedConsumer:
    """A client that waits in vain, tells how far it has fetched, and at last finds the end of the partition."""

    def __init__(self, properties: dict[str, Any], clock: Clock, fetched: Iterator[int], polls: int) -> None:
        self._tell: Callable[[str], None] = properties["stats_cb"]
        self._clock, self._fetched, self._left = clock, fetched, polls

    def assign(self, places: object) -> None:
        """Nothing to do."""

    def consume(self, number: int, timeout: float) -> list[EndOfPartition]:  # noqa: ARG002 - the method of a client
        if not timeout:
            return []
        self._clock.now += 50.0
        self._left -= 1
        partition = {"next_offset": next(self._fetched)}
        self._tell(json.dumps({"topics": {"events": {"partitions": {"3": partition, "-1": {}}}, "other": {}}}))
        return [EndOfPartition()] if self._left <= 0 else []


def consumer_of(
    monkeypatch: pytest.MonkeyPatch, fetched: Iterator[int], polls: int
) -> partition_consumer.PartitionConsumer:
    clock = Clock()
    monkeypatch.setattr(partition_consumer, "time", clock)
    monkeypatch.setattr(
        partition_consumer, "Consumer", lambda properties: ScriptedConsumer(properties, clock, fetched, polls)
    )
    bounds = partition_consumer.Bounds(0, END)
    return PartitionConsumer(TOPIC, 3, bounds, {"bootstrap.servers": "none:1"}, lambda: bounds)


def test_aborted_records_are_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """They give no record for long over a slow link; reading ends where nothing else is there."""
    consumer = consumer_of(monkeypatch, iter(range(1, 1_000)), 20)
    assert list(consumer.records()) == []
    assert consumer.position == END


def test_silence_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that fetches nothing for a minute fails, however often it tells so."""
    with pytest.raises(StoreUnavailable, match="nothing for 60 s at offset 0"):
        list(consumer_of(monkeypatch, iter([7] * 20), 20).records())

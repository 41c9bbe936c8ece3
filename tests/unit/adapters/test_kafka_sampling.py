"""Samples of partitions: also of the middle and the end, without waiting for these."""

from collections.abc import Sequence
from typing import Any

import pytest

from compactor.core.kafka.ranges import Topic

pytest.importorskip("confluent_kafka")

from confluent_kafka import TopicPartition

from compactor.adapters.kafka import sampling

TOPIC = Topic("main", "events")


class Message:
    """A record of partition 0."""

    def __init__(self, offset: int, length: int) -> None:
        self._offset, self._length = offset, length

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"x" * self._length

    def error(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, self._offset


class Partition:
    """A client with one partition of records of these lengths; behind `readable` it gives nothing and no error."""

    def __init__(self, lengths: Sequence[int], readable: int | None = None) -> None:
        self.lengths, self.readable = lengths, len(lengths) if readable is None else readable
        self.at: int | None = None
        self.places: list[int] = []

    def __call__(self, _: Any) -> "Partition":
        return self

    def assign(self, places: Sequence[TopicPartition]) -> None:
        [place] = places
        self.at = int(place.offset)
        self.places.append(self.at)

    incremental_assign = assign

    def incremental_unassign(self, _: Sequence[TopicPartition]) -> None:
        self.at = None

    def get_watermark_offsets(self, _: TopicPartition, *, cached: bool) -> tuple[int, int]:
        assert cached
        return 0, len(self.lengths)

    def consume(self, most: int, timeout: float) -> list[Message]:  # noqa: ARG002 - as the client has it
        if self.at is None or self.at >= self.readable:
            return []
        end = min(self.at + most, self.readable)
        first, self.at = self.at, end
        return [Message(each, self.lengths[each]) for each in range(first, end)]

    def close(self) -> None:
        self.at = None


def sample_of(client: Partition, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(sampling, "Consumer", client)
    monkeypatch.setattr(sampling, "LATER_SECONDS", 0.05)
    found = sampling.sampled({}, TOPIC, {0: 0})[0]
    assert found.first_at is not None
    assert found.first_at.timestamp() == 0
    return found.offset_bytes


def test_later_records_that_are_much_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is near the truth, which the first records tell nothing of."""
    client = Partition([2] * 300 + [20_000] * 3_000)
    truth = sum(client.lengths) / len(client.lengths)
    assert truth / 2 < sample_of(client, monkeypatch) < truth * 2
    assert client.places == [0, 1750, 3250]


def test_a_partition_with_few_records_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is counted twice."""
    client = Partition([4] * 250)
    assert sample_of(client, monkeypatch) == 4
    assert client.places == [0]


def test_what_is_not_given_of_the_middle_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of records of an open transaction: the sample is of the first ones then."""
    client = Partition([4] * 1_000 + [100] * 9_000, readable=1_000)
    assert sample_of(client, monkeypatch) == 4
    assert client.places == [0, 5100]


def test_what_the_client_had_fetched_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fetches far beyond the first records, and gives these again where the middle begins."""
    monkeypatch.setattr(sampling, "_BATCH", 420)
    lengths = [4] * 300 + [8] * 300
    assert sample_of(Partition(lengths), monkeypatch) == (4 + 8 + 8) / 3

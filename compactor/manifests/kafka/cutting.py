"""Cuts what a partition has into ranges. Decisions, no I/O."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import StoreUnavailable
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.kafka.ports import Bounds, Sample
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.core.kafka.record_columns import RecordColumn
from compactor.core.kafka.value_lines import KafkaValues

RANGE_BYTES = 64 * 1024 * 1024
"""About how many bytes a range has: it is read by one task, and quarantined as a whole."""

MAX_OFFSETS = 1_000_000
"""The most offsets of a range. Those without a record are blank lines, a byte each."""

UNKNOWN_DENSITY = 1024.0
"""Bytes of an offset where no sample was to be had."""


@dataclass(frozen=True, slots=True)
class Uncut:
    """What is to be planned of a partition.

    Attributes:
        head: The first offset that is in no manifest.
        sample: What records from there on are like; None if none was to be had.
    """

    partition: int
    head: int
    bounds: Bounds
    sample: Sample | None = None

    @property
    def start(self) -> int:
        """The first offset that is to be planned and that is still there."""
        return max(self.head, self.bounds.earliest)

    @property
    def has_new(self) -> bool:
        """Whether anything is to be planned, also if it is gone."""
        return self.head < max(self.bounds.earliest, self.bounds.end)

    @property
    def unplanned(self) -> int:
        """How many offsets are in no manifest, those of open transactions included."""
        return max(self.bounds.end - self.head, 0) + self.bounds.undecided

    @property
    def is_held(self) -> bool:
        """Whether an open transaction keeps all that is in no manifest from being planned."""
        return bool(self.bounds.undecided) and not self.has_new

    @property
    def offset_bytes(self) -> float:
        """About how many bytes of values an offset has."""
        return UNKNOWN_DENSITY if self.sample is None else self.sample.offset_bytes


def not_asked(partition: int, error: StoreUnavailable) -> StoreUnavailable:
    """Why it is not known what a partition has, with its number."""
    return StoreUnavailable(f"partition {partition} could not be asked: {error}")


def ranges(topic: Topic, uncut: Uncut, range_bytes: float) -> Iterator[tuple[KafkaRange, int]]:
    """Cut all that is to be planned of a partition, in order; each range with about how many bytes it has.

    What retention removed is a range of its own, without bytes, so that it is quarantined under its exact offsets.
    """
    earliest, end = uncut.bounds.earliest, uncut.bounds.end
    if uncut.head < earliest:  # guard: removed records are a range of their own
        yield KafkaRange(topic, uncut.partition, uncut.head, earliest), 0
    step = min(MAX_OFFSETS, max(1, int(range_bytes / max(uncut.offset_bytes, 1.0))))
    for first in range(uncut.start, end, step):
        cut = KafkaRange(topic, uncut.partition, first, min(first + step, end))
        yield cut, int(cut.offsets * uncut.offset_bytes)


def files(
    cut: Iterable[tuple[KafkaRange, int]],
    topic_id: str,
    now: datetime,
    record_columns: Sequence[RecordColumn] = (),
    values: KafkaValues = "record",
) -> Iterator[ManifestFile]:
    """The ranges as manifests name them."""
    for each, size_bytes in cut:
        yield ManifestFile(
            uri=str(each),
            size_bytes=size_bytes,
            etag=topic_id,
            event_time=now,
            dated_by=ARRIVAL,
            record_columns=tuple(record_columns) or None,
            kafka_values=None if values == "record" else values,
        )

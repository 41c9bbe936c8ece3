"""Cuts what a partition has into ranges. Decisions, no I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.named_dates import ARRIVAL
from compactor.core.kafka.ports import Bounds
from compactor.core.kafka.ranges import KafkaRange, Topic

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
        density: About how many bytes of values an offset has.
    """

    partition: int
    head: int
    bounds: Bounds
    density: float = UNKNOWN_DENSITY


def ranges(topic: Topic, uncut: Uncut, range_bytes: float) -> Iterator[tuple[KafkaRange, int]]:
    """Cut all that is to be planned of a partition, in order; each range with about how many bytes it has.

    What retention removed is a range of its own, without bytes, so that it is quarantined under its exact offsets.
    """
    earliest, end = uncut.bounds.earliest, uncut.bounds.end
    if uncut.head < earliest:
        yield KafkaRange(topic, uncut.partition, uncut.head, earliest), 0
    step = min(MAX_OFFSETS, max(1, int(range_bytes / max(uncut.density, 1.0))))
    for first in range(max(uncut.head, earliest), end, step):
        cut = KafkaRange(topic, uncut.partition, first, min(first + step, end))
        yield cut, int(cut.offsets * uncut.density)


def files(cut: Iterable[tuple[KafkaRange, int]], topic_id: str, now: datetime) -> Iterator[ManifestFile]:
    """The ranges as manifests name them."""
    for each, size_bytes in cut:
        yield ManifestFile(uri=str(each), size_bytes=size_bytes, etag=topic_id, event_time=now, dated_by=ARRIVAL)

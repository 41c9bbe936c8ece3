"""Redrives quarantined ranges of Kafka partitions: what is left apart from what was removed, large ones in parts."""

from dataclasses import dataclass, field
from itertools import pairwise

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.kafka.ports import OpenKafka, bounds_of
from compactor.core.kafka.ranges import KafkaRange

PARTS_OF_LARGE = 8
"""Into how many parts a range is cut that is too large: one that is 500 times too large takes three redrives."""

_ACCEPT = "`compactor accept` puts on record that it is gone"


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """A range that cannot be redriven, because nothing of it is left."""

    why: str


@dataclass(frozen=True, slots=True)
class Untold:
    """A range that cannot be redriven, because no broker told what is left of it."""

    why: str


@dataclass(frozen=True, slots=True)
class RangesLeft:
    """Asks brokers what is left of quarantined ranges.

    Brokers that do not answer are waited for once, not for each of their ranges. So the object is for one command.
    """

    kafka: OpenKafka
    _silent: dict[str, Untold] = field(default_factory=dict, init=False)  # by cluster, topic, or partition of it

    def parts_of(self, report: FileReport) -> list[ManifestFile] | NothingLeft | Untold:
        """The ranges that a quarantined range is redriven as, or why it cannot be.

        Of a range that retention has removed some of, the removed part is one of them, so that it stays quarantined
        under its exact offsets. A range that is too large is cut: no one knows how large it is, and it may not be as
        large everywhere. So redrives of its parts end, at the latest with ranges of one offset.
        """
        wanted = KafkaRange.parse(report.uri)
        places = (wanted.topic.cluster, wanted.topic.uri, f"{wanted.topic}/{wanted.partition}")
        for place in places:
            if place in self._silent:
                return self._silent[place]
        cluster, topic, partition = places
        place = cluster
        try:
            log = self.kafka.open()
            live = log.topic(wanted.topic)
            place = partition
            if live is None or live.topic_id != report.etag or wanted.partition not in live.partitions:
                return NothingLeft(f"the topic with the id {report.etag} is gone; {_ACCEPT}")
            return _parts(report, wanted, bounds_of(log, wanted.topic, wanted.partition).earliest)
        except (AccessError, SettingsError, StoreUnavailable) as exc:
            # One topic may be forbidden, and others of its cluster are not.
            place = topic if isinstance(exc, AccessError) else place
            self._silent[place] = Untold(f"cannot ask its brokers: {exc}")
            return self._silent[place]


def _parts(report: FileReport, wanted: KafkaRange, earliest: int) -> list[ManifestFile] | NothingLeft:
    if earliest >= wanted.end:
        return NothingLeft(f"all of it was removed by retention; {_ACCEPT}")
    is_removed, first = earliest > wanted.first, max(earliest, wanted.first)
    step = wanted.end - first
    if report.status is FileStatus.TOO_LARGE:
        step = -(-step // PARTS_OF_LARGE)
    if step == wanted.offsets:
        return [_named(report, report.uri, report.size_bytes)]
    removed = [(KafkaRange(wanted.topic, wanted.partition, wanted.first, first), 0)] if is_removed else []
    ends = pairwise([*range(first, wanted.end, step), wanted.end])
    left = [KafkaRange(wanted.topic, wanted.partition, *each) for each in ends]
    sized = [*removed, *((each, report.size_bytes * each.offsets // wanted.offsets) for each in left)]
    return [_named(report, str(each), size).model_copy(update={"part_of": report.uri}) for each, size in sized]


def _named(report: FileReport, uri: str, size_bytes: int) -> ManifestFile:
    """A range that is read as the one of a report was to be, whatever the settings are now."""
    return ManifestFile(
        uri=uri,
        etag=report.etag,
        size_bytes=size_bytes,
        record_columns=report.record_columns or None,
        kafka_values=report.kafka_values,
    )

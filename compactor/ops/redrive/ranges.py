"""Redrives quarantined ranges of Kafka partitions: what is left of one is redriven apart from what was removed."""

from functools import partial

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport
from compactor.core.kafka.ports import KafkaLog
from compactor.core.kafka.ranges import KafkaRange


def parts_of(report: FileReport, log: KafkaLog) -> list[ManifestFile] | str:
    """The ranges that a quarantined range is redriven as, or why it cannot be.

    Of a range that retention has removed some of, the removed part is one of them, so that it stays quarantined under
    its exact offsets.

    Raises:
        StoreUnavailable: The brokers fail for now.
    """
    wanted = KafkaRange.parse(report.uri)
    live = log.topic(wanted.topic)
    if live is None or live.topic_id != report.etag or wanted.partition not in live.partitions:
        return f"the topic with the id {report.etag} is gone; expected it to be there by now"
    named = partial(_named, report)
    earliest = log.bounds(wanted.topic, [wanted.partition])[wanted.partition].earliest
    if earliest >= wanted.end:
        return "all of it was removed by retention; expected some of it to be left"
    if earliest <= wanted.first:
        return [named(report.uri, report.size_bytes)]
    cut = (_between(wanted, wanted.first, earliest), _between(wanted, earliest, wanted.end))
    sizes = (0, report.size_bytes * cut[1].offsets // wanted.offsets)
    return [
        named(str(each), size_bytes).model_copy(update={"part_of": report.uri})
        for each, size_bytes in zip(cut, sizes, strict=True)
    ]


def _named(report: FileReport, uri: str, size_bytes: int) -> ManifestFile:
    """A range that is read as the one of a report was to be, whatever the settings are now."""
    return ManifestFile(
        uri=uri,
        etag=report.etag,
        size_bytes=size_bytes,
        record_columns=report.record_columns or None,
        kafka_values=report.kafka_values,
    )


def _between(wanted: KafkaRange, first: int, end: int) -> KafkaRange:
    return KafkaRange(wanted.topic, wanted.partition, first, end)

"""Redrives quarantined ranges of Kafka partitions: what is left of one is redriven apart from what was removed."""

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
    columns = report.record_columns or None
    earliest = log.bounds(wanted.topic, [wanted.partition])[wanted.partition].earliest
    if earliest >= wanted.end:
        return "all of it was removed by retention; expected some of it to be left"
    if earliest <= wanted.first:
        whole = ManifestFile(uri=report.uri, etag=report.etag, size_bytes=report.size_bytes, record_columns=columns)
        return [whole]
    cut = (_between(wanted, wanted.first, earliest), _between(wanted, earliest, wanted.end))
    sizes = (0, report.size_bytes * cut[1].offsets // wanted.offsets)
    return [
        ManifestFile(uri=str(each), etag=report.etag, size_bytes=size_bytes, part_of=report.uri, record_columns=columns)
        for each, size_bytes in zip(cut, sizes, strict=True)
    ]


def _between(wanted: KafkaRange, first: int, end: int) -> KafkaRange:
    return KafkaRange(wanted.topic, wanted.partition, first, end)

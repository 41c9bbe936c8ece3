"""Checks a Kinesis stream that input may come from: its rights, whether its shards can be read, and its retention."""

from itertools import islice

from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import KinesisLog
from compactor.core.text.formatting import count, shown_seconds
from compactor.ops.doctor.findings import Finding, fault, ok, warning

MARGIN = 4
"""Retention should be this many times as long as records may wait: an outage lasts longer than a delay."""


def try_stream(log: KinesisLog, stream: KinesisStream, *, wait_seconds: float, is_planned: bool) -> list[Finding]:
    """Describe a stream, list its shards, and read from one as planning does.

    Args:
        log: The streams.
        stream: The stream.
        wait_seconds: How long a record may wait until it is landed.
        is_planned: Whether jobs plan the stream.

    Raises:
        CompactorError: One of these is refused, or does not answer.
    """
    live = log.stream(stream)
    if live is None:
        named = "kinesis.streams" if is_planned else "input.allowed_prefixes"
        return [fault(f"{stream}: there is no such stream", f"create it, or correct {named}")]
    shards = log.shards(stream)
    for shard in shards[:1]:
        reading = log.read(stream, shard.shard_id, 0)
        list(islice(reading, 1))
        reading.close()
    by_command = "" if is_planned else "; no job plans it: `compactor plan` does, or name it in kinesis.streams"
    found = ok(f"{stream}: can describe, list and read {count(len(shards), 'shard')}{by_command}")
    kept = live.retention.total_seconds()
    if kept >= MARGIN * wait_seconds:
        return [found]
    less = f"less than {MARGIN} times the {shown_seconds(wait_seconds)} for which they may wait to be landed"
    move = f"raise the retention of stream {stream.name}"
    return [found, warning(f"{stream}: records are kept for {shown_seconds(kept)}, {less}", move)]

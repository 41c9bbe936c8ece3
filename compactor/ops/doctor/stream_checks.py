"""Checks a Kinesis stream that input may come from: its rights, and whether its shards can be read."""

from itertools import islice

from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import KinesisLog
from compactor.core.text.formatting import count
from compactor.ops.doctor.findings import Finding, fault, ok


def try_stream(log: KinesisLog, stream: KinesisStream) -> Finding:
    """Describe a stream, list its shards, and read from one as planning does.

    Raises:
        CompactorError: One of these is refused, or does not answer.
    """
    if log.stream(stream) is None:
        return fault(f"{stream}: there is no such stream", "create it, or correct input.allowed_prefixes")
    shards = log.shards(stream)
    for shard in shards[:1]:
        reading = log.read(stream, shard.shard_id, 0)
        list(islice(reading, 1))
        reading.close()
    return ok(f"{stream}: can describe, list and read {count(len(shards), 'shard')}")

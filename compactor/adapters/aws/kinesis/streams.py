"""Streams of Kinesis on AWS: `compactor.core.logs.ports.Log`."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, translated
from compactor.adapters.aws.kinesis.fan_out import Subscriber
from compactor.adapters.aws.kinesis.polling import Pace, Poller
from compactor.core.errors import SettingsError
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LAST_HASH, Batch, LiveLog, Partition

_NOT_FOUND = "ResourceNotFoundException"


@dataclass(frozen=True, slots=True)
class Source:
    """How to reach the streams of a source.

    Attributes:
        client: A boto3 client of Kinesis.
        consumer: The name of a registered consumer, for enhanced fan-out; empty to poll.
    """

    client: Any
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class KinesisStreams:
    """The streams of the sources of the settings.

    Attributes:
        sources: By name.
        pace: How often a shard is asked.
    """

    sources: Mapping[str, Source]
    pace: Pace = field(default_factory=Pace)

    def describe(self, log: LogName) -> LiveLog | None:
        found = self._described(log)
        if found is None:
            return None
        _, _, _, region, account, _ = str(found["StreamARN"]).split(":", 5)
        created = found["StreamCreationTimestamp"].astimezone(UTC)
        retention = timedelta(hours=found.get("RetentionPeriodHours") or 24)
        return LiveLog(f"{account}-{region}-{created:%Y%m%dT%H%M%S.%f}", retention)

    def partitions(self, log: LogName) -> list[Partition]:
        client, found = self._source(log).client, list[Partition]()
        wanted: dict[str, str] = {"StreamName": log.name}
        while wanted:
            with translated(str(log)):
                answer = client.list_shards(**wanted)
            found += [_shard(each) for each in answer["Shards"]]
            token = answer.get("NextToken")
            wanted = {"NextToken": token} if token else {}
        return found

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:  # noqa: ARG002
        source = self._source(log)
        if not source.consumer:
            return Poller(source.client, log, partition_id, self.pace).read(at)
        consumer = self._consumer_arn(log, source)
        return Subscriber(source.client, consumer, f"{log}/{partition_id}", partition_id).read(at)

    def _source(self, stream: LogName) -> Source:
        try:
            return self.sources[stream.source]
        except KeyError:
            raise SettingsError([f"kinesis.sources: expected {stream.source}, which {stream} names"]) from None

    def _described(self, stream: LogName) -> dict[str, Any] | None:
        client = self._source(stream).client
        with translated(str(stream)):
            try:
                answer = client.describe_stream_summary(StreamName=stream.name)
            except ClientError as exc:
                if error_code(exc) == _NOT_FOUND:
                    return None
                raise
        found: dict[str, Any] = answer["StreamDescriptionSummary"]
        return found

    def _consumer_arn(self, stream: LogName, source: Source) -> str:
        described = self._described(stream)
        expected = f"kinesis.sources.{stream.source}.consumer: {source.consumer!r} -> expected a consumer of {stream}"
        if described is None:
            raise SettingsError([expected])
        with translated(str(stream)):
            try:
                answer = source.client.describe_stream_consumer(
                    StreamARN=described["StreamARN"], ConsumerName=source.consumer
                )
            except ClientError as exc:
                if error_code(exc) == _NOT_FOUND:
                    raise SettingsError([expected]) from exc
                raise
        return str(answer["ConsumerDescription"]["ConsumerARN"])


def _shard(described: Mapping[str, Any]) -> Partition:
    parents = [described.get("ParentShardId"), described.get("AdjacentParentShardId")]
    hashes = described.get("HashKeyRange", {})
    return Partition(
        partition_id=described["ShardId"],
        parents=tuple(each for each in parents if each),
        first_hash=int(hashes.get("StartingHashKey", 0)),
        last_hash=int(hashes.get("EndingHashKey", LAST_HASH)),
        is_closed="EndingSequenceNumber" in described.get("SequenceNumberRange", {}),
    )

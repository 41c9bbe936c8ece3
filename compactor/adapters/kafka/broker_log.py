"""`compactor.core.logs.ports.KafkaLog` on real brokers."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, OffsetSpec, ResourceType, TopicDescription

from compactor.adapters.kafka.errors import NO_TOPIC, NotedErrors, constructed, translated
from compactor.adapters.kafka.partition_consumer import Bounds, PartitionConsumer, cut_off
from compactor.adapters.kafka.properties import client_properties, has_changed, resolved
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, LiveLog, Partition, TopicFacts

T = TypeVar("T")

_NOT_THE_TIP = 0.001
"""The minimum lag of a response behind the newest record, unless it is at the tip."""


class BrokerLog:
    """The committed records of some clusters. Has one request client per cluster; each read has its own.

    Secrets may be rotated at any time. So a request client is replaced if its secrets have changed, or after it failed.

    Args:
        with_columns: Whether records have their key, timestamp and headers.
    """

    def __init__(
        self, clusters: Mapping[str, Mapping[str, str]], *, request_seconds: float, with_columns: bool = False
    ) -> None:
        self._clusters = clusters
        self._with_columns = with_columns
        self._request_seconds = request_seconds
        self._admins: dict[str, tuple[Mapping[str, str], AdminClient]] = {}
        self._errors: dict[str, NotedErrors] = {}
        self._lock = threading.Lock()

    def nodes(self, cluster: str) -> int:
        with self._asking(cluster, f"kafka://{cluster}") as admin:
            asked = admin.describe_cluster(request_timeout=self._request_seconds)
            return len(asked.result().nodes)

    def inspect(self, topic: LogName) -> TopicFacts | None:
        return self._unless_missing(topic, lambda admin: _inspected(admin, topic.name, self._request_seconds))

    def describe(self, log: LogName) -> LiveLog | None:
        found = self._described(log)
        # As Kafka spells ids; librdkafka uses the other base64 alphabet, which has a slash.
        topic_id = "" if found is None else str(found.topic_id).replace("+", "-").replace("/", "_")
        return None if found is None else LiveLog(topic_id, tells_gaps=True)

    def _described(self, topic: LogName) -> TopicDescription | None:
        asked, seconds = TopicCollection([topic.name]), self._request_seconds
        return self._unless_missing(
            topic, lambda admin: admin.describe_topics(asked, request_timeout=seconds)[topic.name].result()
        )

    def _unless_missing(self, topic: LogName, ask: Callable[[AdminClient], T]) -> T | None:
        with self._asking(topic.source, str(topic)) as admin:
            try:
                return ask(admin)
            except KafkaException as exc:
                if exc.args[0].code() in NO_TOPIC:
                    return None
                raise

    def partitions(self, log: LogName) -> list[Partition]:
        found = self._described(log)
        return [] if found is None else [Partition(str(each)) for each in sorted(each.id for each in found.partitions)]

    def read(self, log: LogName, partition_id: str, at: int, limit_bytes: int) -> Generator[Batch]:
        """See `Log.read`. Ends at the last stable offset as of its start, and closes its client."""
        partition, bounds = int(partition_id), self._bounds(log, int(partition_id))
        if bounds.end < at:
            raise cut_off(f"{log}/{partition}", bounds.end, at)
        start = max(at, bounds.earliest)
        yield Batch((), _NOT_THE_TIP, reached=start, kept_from=bounds.earliest + 1)
        if start < bounds.end:
            yield from self._read(log, partition, replace(bounds, earliest=start), limit_bytes)
        else:
            yield self._tip(bounds)

    def _read(self, log: LogName, partition: int, bounds: Bounds, limit_bytes: int) -> Generator[Batch]:
        taken, last = 0, Batch(())
        consumer = PartitionConsumer(
            log,
            partition,
            bounds,
            self._properties(log.source),
            partial(self._bounds, log, partition),
            with_columns=self._with_columns,
        )
        with closing(consumer):
            for records in consumer.records():
                behind = _behind_seconds(consumer.timestamp_ms)
                taken += sum(len(each.data or b"") for each in records)
                last = Batch(records, behind, reached=consumer.position)
                if taken >= limit_bytes:
                    break
                yield last
        if taken >= limit_bytes:
            yield last
        if consumer.position >= bounds.end:
            yield self._tip(bounds)

    def _tip(self, bounds: Bounds) -> Batch:
        return Batch((), reached=bounds.end, is_held=bool(bounds.undecided))

    def _bounds(self, topic: LogName, partition: int) -> Bounds:
        """A partition's current bounds."""
        earliest, stable, written = (
            self._offset(topic, partition, spec, level)
            for spec, level in (
                (OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED),
                (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
                (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
            )
        )
        end = max(stable, earliest)
        return Bounds(earliest, end, max(written - end, 0))

    def _offset(self, topic: LogName, partition: int, spec: OffsetSpec, level: IsolationLevel) -> int:
        """An offset in a partition. librdkafka returns a negative one if the leader is down."""
        asked = {TopicPartition(topic.name, partition): spec}
        with self._asking(topic.source, f"{topic}/{partition}") as admin:
            [answer] = admin.list_offsets(asked, isolation_level=level, request_timeout=self._request_seconds).values()
            offset = int(answer.result().offset)
            if offset < 0:
                raise StoreUnavailable(f"{topic}/{partition}: its leader does not respond")
            return offset

    @contextmanager
    def _asking(self, cluster: str, where: str) -> Iterator[AdminClient]:
        """Translate errors. With refused credentials a request only times out, so the connection errors are checked.

        The client is kept while in use: if another thread discarded it, pending requests would end with it.
        """
        noted = self._errors.setdefault(cluster, NotedErrors())
        noted.clear()
        made_of, admin = self._client(cluster)
        try:
            with translated(where):
                yield admin
        except (StoreUnavailable, AccessError) as exc:
            with self._lock:
                if self._admins.get(cluster) == (made_of, admin):
                    del self._admins[cluster]
            admin.poll(0)  # runs the callbacks with the connections' errors
            refusal = noted.refusal(where, self._properties(cluster)) or exc
            if isinstance(refusal, AccessError) and has_changed(cluster, self._properties(cluster), made_of):
                raise StoreUnavailable(f"{where}: refused because a secret was changed meanwhile") from exc
            if refusal is not exc:
                raise refusal from exc
            if noted.text and isinstance(exc, StoreUnavailable):
                raise StoreUnavailable(f"{exc} ({noted.text})") from exc
            raise

    def _client(self, cluster: str) -> tuple[Mapping[str, str], AdminClient]:
        given = self._properties(cluster)
        found = resolved(cluster, given)
        with self._lock:
            made_of, admin = self._admins.get(cluster, (None, None))
            if admin is None or made_of != found:
                noted = self._errors.setdefault(cluster, NotedErrors())
                properties = client_properties(cluster, given, found)
                with constructed(cluster):
                    admin = AdminClient({**properties, "error_cb": noted.note})
                self._admins[cluster] = found, admin
            return found, admin

    def _properties(self, cluster: str) -> Mapping[str, str]:
        try:
            return self._clusters[cluster]
        except KeyError:
            known = ", ".join(self._clusters)
            raise SettingsError([f'kafka.clusters: no "{cluster}" -> expected it in addition to {known}']) from None


def _behind_seconds(timestamp_ms: int | None) -> float:
    """A record's age by its producer's timestamp; slightly positive, as others follow it."""
    return max(time.time() - (timestamp_ms or 0) / 1000, _NOT_THE_TIP) if timestamp_ms else _NOT_THE_TIP


def _inspected(admin: AdminClient, name: str, seconds: float) -> TopicFacts:
    """Describe a topic: its partitions, the permission to read it, and its retention.

    Raises:
        KafkaException: There is no such topic, or describing it is not permitted.
    """
    asked = admin.describe_topics(TopicCollection([name]), include_authorized_operations=True, request_timeout=seconds)
    found = asked[name].result()
    allowed = found.authorized_operations
    may_read = None if allowed is None else bool({AclOperation.READ, AclOperation.ALL} & set(allowed))
    try:
        retention_seconds, retention_bytes = _retention(admin, name, seconds)
    except KafkaException as exc:
        return TopicFacts(len(found.partitions), may_read, unknown_because=exc.args[0].name())
    return TopicFacts(len(found.partitions), may_read, retention_seconds, retention_bytes)


def _retention(admin: AdminClient, name: str, seconds: float) -> tuple[float | None, int | None]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    [answer] = admin.describe_configs([resource], request_timeout=seconds).values()
    config = {key: entry.value for key, entry in answer.result().items()}
    is_deleted = "delete" in str(config.get("cleanup.policy", "delete"))
    milliseconds, length = int(config.get("retention.ms") or -1), int(config.get("retention.bytes") or -1)
    return (
        milliseconds / 1000 if is_deleted and milliseconds >= 0 else None,
        length if is_deleted and length >= 0 else None,
    )

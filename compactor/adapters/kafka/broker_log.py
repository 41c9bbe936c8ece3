"""`compactor.core.kafka.ports.KafkaLog` on real brokers: topics, bounds, samples and ranges."""

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from compactor.adapters.kafka.errors import NO_TOPIC, NotedErrors, constructed, translated
from compactor.adapters.kafka.inspection import inspected
from compactor.adapters.kafka.properties import client_properties, consumer_properties, has_changed, resolved
from compactor.adapters.kafka.range_consumer import RangeConsumer
from compactor.adapters.kafka.sampling import sampled
from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, FileError, SettingsError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, LiveTopic, RangeEnd, Record, Sample, TopicFacts, bounds_of
from compactor.core.kafka.ranges import SCHEME, KafkaRange, Topic


class BrokerLog:
    """The committed records of some clusters. Asks by one client for each cluster; each reading has its own.

    Secrets may be rotated while this is there. So a client that asks is made anew once they are others, or once it has
    failed: it would go on with those that it was made with.

    Args:
        clusters: The properties of each cluster.
        request_seconds: How long to wait for an answer.
    """

    def __init__(self, clusters: Mapping[str, Mapping[str, str]], *, request_seconds: float) -> None:
        self._clusters = clusters
        self._request_seconds = request_seconds
        self._admins: dict[str, tuple[Mapping[str, str], AdminClient]] = {}
        self._errors: dict[str, NotedErrors] = {}
        self._lock = threading.Lock()

    def nodes(self, cluster: str) -> int:
        """See `KafkaLog.nodes`."""
        with self._asking(cluster, f"{SCHEME}{cluster}") as admin:
            asked = admin.describe_cluster(request_timeout=self._request_seconds)
            return len(asked.result().nodes)

    def inspect(self, topic: Topic) -> TopicFacts | None:
        """See `KafkaLog.inspect`."""
        with self._asking(topic.cluster, topic.uri) as admin:
            try:
                return inspected(admin, topic.name, self._request_seconds)
            except KafkaException as exc:
                if exc.args[0].code() in NO_TOPIC:
                    return None
                raise

    def topic(self, topic: Topic) -> LiveTopic | None:
        """See `KafkaLog.topic`."""
        with self._asking(topic.cluster, topic.uri) as admin:
            asked = admin.describe_topics(TopicCollection([topic.name]), request_timeout=self._request_seconds)
            try:
                found = asked[topic.name].result()
            except KafkaException as exc:
                if exc.args[0].code() in NO_TOPIC:
                    return None
                raise
        # As Kafka spells ids; librdkafka takes the other alphabet of base 64, which has a slash.
        topic_id = str(found.topic_id).replace("+", "-").replace("/", "_")
        return LiveTopic(topic_id, tuple(sorted(each.id for each in found.partitions)))

    def bounds(self, topic: Topic, partitions: Sequence[int]) -> dict[int, Bounds | StoreUnavailable]:
        """See `KafkaLog.bounds`. A partition is not asked again once it has not answered: that may take long."""
        found: dict[int, list[int]] = {each: [] for each in partitions}
        offline: dict[int, StoreUnavailable] = {}
        for spec, isolation_level in (
            (OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED),
            (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
            (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
        ):
            left = [each for each in partitions if each not in offline]
            for each, answer in self._offsets(topic, left, spec, isolation_level).items():
                if isinstance(answer, StoreUnavailable):
                    offline[each] = answer
                else:
                    found[each].append(answer)
        return {each: offline[each] if each in offline else _bounds(*found[each]) for each in partitions}

    def samples(self, topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
        """See `KafkaLog.samples`."""
        properties = consumer_properties(topic.cluster, self._properties(topic.cluster))
        with translated(str(topic)):
            return sampled(properties, topic, starts)

    def read(
        self, wanted: KafkaRange, topic_id: str, *, with_columns: bool = False
    ) -> Generator[Sequence[Record], None, RangeEnd]:
        """See `KafkaLog.read`. The id is compared before and after, so no record of another topic passes for one."""
        self._check_topic(wanted, topic_id)
        properties = self._properties(wanted.topic.cluster)
        with closing(RangeConsumer(wanted, properties, self._bounds_of, with_columns=with_columns)) as consumer:
            end = yield from consumer.records()
        self._check_topic(wanted, topic_id)
        return end

    def _bounds_of(self, wanted: KafkaRange) -> Bounds:
        return bounds_of(self, wanted.topic, wanted.partition)

    def _check_topic(self, wanted: KafkaRange, topic_id: str) -> None:
        found = self.topic(wanted.topic)
        if found is None or found.topic_id != topic_id:
            now = "there is no such topic" if found is None else f"the topic of this name has the id {found.topic_id}"
            what = f"offsets {wanted.first} to {wanted.end - 1} of partition {wanted.partition}"
            raise FileError(FileStatus.MISSING, f"{now}; expected the id {topic_id}: {what} of it cannot be read")

    def _offsets(
        self,
        topic: Topic,
        partitions: Sequence[int],
        spec: OffsetSpec,
        isolation_level: IsolationLevel,
    ) -> dict[int, int | StoreUnavailable]:
        """An offset of each partition, or why it has not answered.

        Raises:
            AccessError: A person must act. If none has answered, that may be the reason.
        """
        asked = {TopicPartition(topic.name, each): spec for each in partitions}
        if not asked:
            return {}
        try:
            with self._asking(topic.cluster, topic.uri) as admin:
                answers = admin.list_offsets(
                    asked, isolation_level=isolation_level, request_timeout=self._request_seconds
                )
                found = {place.partition: _offset(topic, answer) for place, answer in answers.items()}
                errors = [each for each in found.values() if isinstance(each, StoreUnavailable)]
                if len(errors) == len(found):
                    raise errors[0]  # so that the client is given up, and what it met is told
                return found
        except StoreUnavailable as exc:
            return dict.fromkeys(partitions, exc)

    @contextmanager
    def _asking(self, cluster: str, where: str) -> Iterator[AdminClient]:
        """Raise the errors of the port. Of refused credentials a request says only that it timed out.

        The client is held for as long as it is asked: other requests end with it, should another thread give it up.
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
            admin.poll(0)  # calls back with what the connections met
            refusal = noted.refusal(where, self._properties(cluster)) or exc
            if isinstance(refusal, AccessError) and has_changed(cluster, self._properties(cluster), made_of):
                raise StoreUnavailable(f"{where}: refused with a secret that was changed meanwhile") from exc
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
            raise SettingsError([f'kafka.clusters: no "{cluster}" -> expected it beside {known}']) from None


def _offset(topic: Topic, answer: Future[ListOffsetsResultInfo]) -> int | StoreUnavailable:
    """The offset that was asked for, or why there is none.

    For a broker that is down and still the leader, librdkafka gives a negative offset in place of an error.
    """
    try:
        with translated(topic.uri):
            offset = int(answer.result().offset)
    except StoreUnavailable as exc:
        return exc
    return offset if offset >= 0 else StoreUnavailable(f"{topic.uri}: the leader of a partition does not answer")


def _bounds(earliest: int, stable: int, written: int) -> Bounds:
    end = max(stable, earliest)
    return Bounds(earliest, end, max(written - end, 0))

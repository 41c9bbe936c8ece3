"""Creates a topic on a local broker, and writes values to it: for the demo."""

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compactor.core.errors import CompactorError

_ANSWER_SECONDS = 30.0


def answers(servers: str) -> bool:
    """Whether a broker responds."""
    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=5).brokers)
    except KafkaException:
        return False


def make_topic(servers: str, name: str, partitions: int) -> None:
    """Create an empty topic."""
    client = AdminClient({"bootstrap.servers": servers})  # it must live until the response arrives
    for created in client.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result(timeout=_ANSWER_SECONDS)


class TopicWriter:
    """Writes values to a topic's partitions."""

    def __init__(self, servers: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "compression.type": "lz4"})
        self._errors: list[KafkaError] = []

    def write(self, partition: int, values: Sequence[bytes]) -> None:
        """Write values in order, and wait until the broker has them.

        Raises:
            CompactorError: It refused a value.
        """
        for value in values:
            while True:
                try:
                    self._producer.produce(self._topic, value, partition=partition, on_delivery=self._note)
                    break
                except BufferError:
                    self._producer.poll(1)
        self._producer.flush()
        if self._errors:
            raise CompactorError(f"topic {self._topic}: {self._errors[0]}; expected the broker to accept every value")

    def _note(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._errors.append(error)

"""Turns errors of librdkafka into those of the port."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from compactor.core.errors import AccessError, CompactorError, SettingsError, StoreUnavailable

_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - codes of librdkafka itself begin so
    }
)
NO_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001
)
OUT_OF_RANGE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001
OF_GROUP = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
"""About the consumer group that librdkafka asks for in any case. A range is read without one."""

END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001


def is_refusal(error: KafkaError) -> bool:
    """Whether a person must act on an error."""
    return error.code() in _REFUSED


def error_of(where: str, error: KafkaError) -> CompactorError:
    """The error of the port for one of librdkafka, whose text holds no record."""
    if is_refusal(error):
        return AccessError(f"{where}: {error.name()}: {error.str()}; expected the right to read and to describe it")
    return StoreUnavailable(f"{where}: {error.name()}: {error.str()}")


@contextmanager
def constructed(cluster: str) -> Iterator[None]:
    """Raise a `SettingsError` if librdkafka refuses properties, without its own words: they may quote a secret."""
    try:
        yield
    except KafkaException as exc:
        name = exc.args[0].name() if isinstance(exc.args[0], KafkaError) else "refused"
        raise SettingsError(
            [f"kafka.clusters.{cluster}: {name} -> expected names, values and files that librdkafka takes"]
        ) from None


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise the errors of the port for those of librdkafka."""
    try:
        yield
    except KafkaException as exc:
        raise error_of(where, exc.args[0]) from exc

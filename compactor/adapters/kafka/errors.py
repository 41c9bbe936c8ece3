"""Translates librdkafka errors."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException

from compactor.core.errors import AccessError, CompactorError, SettingsError, StoreUnavailable

_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)
NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
OUT_OF_RANGE = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})
OF_GROUP = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
"""Consumer group errors, as librdkafka always looks up a group. A partition is read without one."""

END_OF_PARTITION = KafkaError._PARTITION_EOF
_ADDRESS = re.compile(r"ssl://(?P<host>[^/\s]+):(?P<port>[0-9]+)/")
_PROBE_SECONDS = 3.0


def is_refusal(error: KafkaError) -> bool:
    """Whether an error needs an operator. A connection that ends during the TLS handshake may be transient."""
    return error.code() in _REFUSED or (error.code() == KafkaError._SSL and "certificate" in error.str())


def error_of(where: str, error: KafkaError, properties: Mapping[str, object] = MappingProxyType({})) -> CompactorError:
    """The compactor's error for a librdkafka error. Its text contains no record."""
    said = f"{where}: {error.name()}: {error.str()}"
    if not is_refusal(error):
        return StoreUnavailable(said)
    if error.code() == KafkaError._SSL:
        why = _fault_of_certificate(error.str(), properties) if properties else ""
        expected = "a currently valid certificate for the connected host, issued by an authority in ssl.ca.location"
        return AccessError(f"{where}: TLS: {why or error.str()}; expected {expected}")
    return AccessError(f"{said}; expected permission to read and describe it")


def _fault_of_certificate(text: str, properties: Mapping[str, object]) -> str:
    """Why the broker's certificate in an error is refused; empty if unknown.

    librdkafka does not distinguish an expired certificate from one for a different host. It trusts the cluster's
    authorities, or the machine's.
    """
    found = _ADDRESS.search(text)
    if found is None:
        return ""
    host, port = found["host"].strip("[]"), int(found["port"])
    try:
        trusted = ssl.create_default_context(cafile=str(properties.get("ssl.ca.location") or "") or None)
        with socket.create_connection((host, port), timeout=_PROBE_SECONDS) as plain:
            plain.settimeout(_PROBE_SECONDS)
            with trusted.wrap_socket(plain, server_hostname=host):
                return ""
    except ssl.SSLCertVerificationError as exc:
        return str(exc.verify_message).rstrip(".")
    except (OSError, ValueError):
        return ""


class NotedErrors:
    """Keeps the most informative error among a client's connections.

    The last error is often that no broker is left, which is less informative than refused credentials.
    """

    def __init__(self) -> None:
        self._error: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        """Keep an error, unless the kept one is more informative; for `error_cb`."""
        if self._error is None or _weight(error) >= _weight(self._error):
            self._error = error

    def clear(self) -> None:
        self._error = None

    def refusal(self, where: str, properties: Mapping[str, object]) -> AccessError | None:
        """The kept error if it needs an operator; else None."""
        if self._error is None or not is_refusal(self._error):
            return None
        found = error_of(where, self._error, properties)
        return found if isinstance(found, AccessError) else None

    @property
    def text(self) -> str:
        """The kept error's text; empty if there is none."""
        return "" if self._error is None else f"{self._error.name()}: {self._error.str()}"


def _weight(error: KafkaError) -> int:
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        return 0
    return 2 if is_refusal(error) else 1


@contextmanager
def constructed(cluster: str) -> Iterator[None]:
    """Raise a `SettingsError` if librdkafka refuses properties, without its message, which may quote a secret."""
    try:
        yield
    except KafkaException as exc:
        name = exc.args[0].name() if isinstance(exc.args[0], KafkaError) else "refused"
        raise SettingsError(
            [f"kafka.clusters.{cluster}: {name} -> expected names, values and files accepted by librdkafka"]
        ) from None


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Translate librdkafka errors."""
    try:
        yield
    except KafkaException as exc:
        raise error_of(where, exc.args[0]) from exc

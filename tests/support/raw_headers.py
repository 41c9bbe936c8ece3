"""Sends records whose headers have any names: the client for Python takes only text, as Kafka wants it."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

_SECONDS = 30
_PRODUCER = 0
# Tags of the arguments of rd_kafka_producev, from rdkafka.h.
_END, _TOPIC, _PARTITION, _VALUE, _FLAGS, _HEADERS = 0, 1, 3, 4, 7, 10
_COPY = 2


def send_with_headers(
    servers: str, topic: str, partition: int, values: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]]
) -> None:
    """Send records with the same headers, and wait until brokers have them."""
    library = _library()
    with _producer(library, servers) as producer:
        for value in values:
            given = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(len(headers))))
            for name, header in headers:
                sizes = ctypes.c_ssize_t(len(name)), ctypes.c_ssize_t(len(header))
                library.rd_kafka_header_add(given, name, sizes[0], header, sizes[1])
            failed = library.rd_kafka_producev(
                producer,
                *(ctypes.c_int(_TOPIC), ctypes.c_char_p(topic.encode())),
                *(ctypes.c_int(_PARTITION), ctypes.c_int32(partition)),
                *(ctypes.c_int(_VALUE), ctypes.c_char_p(value), ctypes.c_size_t(len(value))),
                *(ctypes.c_int(_FLAGS), ctypes.c_int(_COPY)),
                *(ctypes.c_int(_HEADERS), given),
                ctypes.c_int(_END),
            )
            assert not failed, failed
        assert not library.rd_kafka_flush(producer, ctypes.c_int(_SECONDS * 1000))


def _library() -> ctypes.CDLL:
    """The library of the client, which it comes with."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


@contextmanager
def _producer(library: ctypes.CDLL, servers: str) -> Iterator[ctypes.c_void_p]:
    error, length = ctypes.create_string_buffer(512), ctypes.c_size_t(512)
    settings = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(settings, b"bootstrap.servers", servers.encode(), error, length)
    producer = ctypes.c_void_p(library.rd_kafka_new(ctypes.c_int(_PRODUCER), settings, error, length))
    assert producer, error.value
    try:
        yield producer
    finally:
        library.rd_kafka_destroy(producer)

"""The clusters of the settings, as a value that driver and executors exchange instead of clients."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from compactor.core.kafka.ports import KafkaLog, NoKafka, OpenKafka

REQUEST_SECONDS = 30.0

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KafkaClusters:
    """How to connect to clusters. Secrets are in it by reference only.

    Attributes:
        clusters: The properties of each cluster, as librdkafka names them.
        request_seconds: How long to wait for an answer.
    """

    clusters: tuple[tuple[str, Properties], ...] = field(repr=False)
    request_seconds: float = REQUEST_SECONDS

    @classmethod
    def of(cls, clusters: Mapping[str, Mapping[str, str]], request_seconds: float = REQUEST_SECONDS) -> Self:
        """The value for the clusters of the settings."""
        found = tuple((name, tuple(sorted(given.items()))) for name, given in sorted(clusters.items()))
        return cls(found, request_seconds)

    def open(self) -> KafkaLog:
        """The clients of this process; always the same object."""
        return _open(self, os.getpid())  # a forked process cannot use the threads of its parent


def kafka_of(clusters: Mapping[str, Mapping[str, str]], request_seconds: float = REQUEST_SECONDS) -> OpenKafka:
    """How to reach the clusters of the settings, which may name none."""
    return KafkaClusters.of(clusters, request_seconds) if clusters else NoKafka()


@lru_cache(maxsize=8)
def _open(clusters: KafkaClusters, _process_id: int) -> KafkaLog:
    # The package is an extra, and takes long to load for commands that read nothing.
    from compactor.adapters.kafka.broker_log import BrokerLog  # noqa: PLC0415

    given = {name: dict(properties) for name, properties in clusters.clusters}
    return BrokerLog(given, request_seconds=clusters.request_seconds)

"""The clusters of the settings, as a value that driver and executors exchange instead of clients."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from compactor.core.kafka.ports import KafkaLog, NoKafka, OpenKafka

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KafkaClusters:
    """How to connect to clusters. Secrets are in it by reference only.

    Attributes:
        clusters: The properties of each cluster, as librdkafka names them.
    """

    clusters: tuple[tuple[str, Properties], ...] = field(repr=False)

    @classmethod
    def of(cls, clusters: Mapping[str, Mapping[str, str]]) -> Self:
        """The value for the clusters of the settings."""
        return cls(tuple((name, tuple(sorted(found.items()))) for name, found in sorted(clusters.items())))

    def open(self) -> KafkaLog:
        """The clients of this process; always the same object."""
        return _open(self, os.getpid())  # a forked process cannot use the threads of its parent


def kafka_of(clusters: Mapping[str, Mapping[str, str]]) -> OpenKafka:
    """How to reach the clusters of the settings, which may name none."""
    return KafkaClusters.of(clusters) if clusters else NoKafka()


@lru_cache(maxsize=8)
def _open(clusters: KafkaClusters, _process_id: int) -> KafkaLog:
    # The package is an extra, and takes long to load for commands that read nothing.
    from compactor.adapters.kafka.broker_log import BrokerLog  # noqa: PLC0415

    return BrokerLog({name: dict(properties) for name, properties in clusters.clusters})

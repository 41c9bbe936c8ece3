"""The clusters of the settings."""

from collections.abc import Mapping

from compactor.core.errors import SettingsError
from compactor.core.logs.ports import KafkaLog

REQUEST_SECONDS = 30.0


def kafka_of(
    clusters: Mapping[str, Mapping[str, str]],
    request_seconds: float = REQUEST_SECONDS,
    *,
    with_columns: bool = False,
) -> KafkaLog:
    """The topics of the clusters of the settings.

    Args:
        clusters: The properties of each cluster, as librdkafka names them.
        request_seconds: How long to wait for an answer.
        with_columns: Whether records have their key, timestamp and headers.

    Raises:
        SettingsError: There are none.
        ExtraMissing: The client is not installed.
    """
    if not clusters:
        raise SettingsError(["kafka.clusters: none -> expected the cluster of the topic"])
    # The package is an extra, and takes long to load for commands that read nothing.
    from compactor.adapters.kafka.broker_log import BrokerLog  # noqa: PLC0415

    return BrokerLog(clusters, request_seconds=request_seconds, with_columns=with_columns)

"""Connects to the Kafka clusters and Kinesis sources in the settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import SettingsError
from compactor.core.logs.ports import KafkaLog, Log

if TYPE_CHECKING:
    from compactor.sources.landing.lines import Strays

REQUEST_SECONDS = 30.0
_KINESIS_ATTEMPTS = 3  # readers wait for throttling themselves


def kafka_of(
    clusters: Mapping[str, Mapping[str, str]],
    request_seconds: float = REQUEST_SECONDS,
    *,
    with_columns: bool = False,
) -> KafkaLog:
    """The topics of the clusters in the settings.

    Args:
        clusters: Each cluster's properties, with librdkafka's names.
        request_seconds: How long to wait for a response.
        with_columns: Whether records have their key, timestamp and headers.

    Raises:
        SettingsError: The settings have no cluster.
        ExtraMissing: The client is not installed.
    """
    if not clusters:
        raise SettingsError(["kafka.clusters: none -> expected the topic's cluster"])
    # The package is an extra, and slow to load for commands that read nothing.
    from compactor.adapters.kafka.broker_log import BrokerLog  # noqa: PLC0415

    return BrokerLog(clusters, request_seconds=request_seconds, with_columns=with_columns)


def kinesis_of(sources: Mapping[str, Mapping[str, str]], spec: StoreSpec) -> Log:
    """The sources' streams. A source without region or endpoint uses those of the settings."""
    # boto3 is slow to load, and only planning needs it.
    from compactor.adapters.aws.kinesis import KinesisStreams, Source  # noqa: PLC0415

    made = {}
    for name, given in sources.items():
        region, endpoint_url = given.get("region") or spec.region, given.get("endpoint_url") or spec.endpoint_url
        own = replace(spec, region=region, endpoint_url=endpoint_url, attempts=spec.attempts or _KINESIS_ATTEMPTS)
        made[name] = Source(own.client("kinesis"), given.get("consumer", ""))
    return KinesisStreams(made)


def stray_rules(sources: Mapping[str, Mapping[str, str]]) -> dict[str, "Strays"]:
    """What to do with packed records that hash to another shard, by source."""
    return {name: "drop" if given.get("strays") == "drop" else "keep" for name, given in sources.items()}

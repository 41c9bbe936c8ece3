"""The sources of the settings: how each process reaches their streams."""

from collections.abc import Mapping

from compactor.core.kinesis.ports import KinesisLog
from compactor.manifests.kinesis.lines import Strays
from compactor.settings.sections import Aws


def kinesis_of(sources: Mapping[str, Mapping[str, str]], aws: Aws) -> KinesisLog:
    """The streams of the sources, with the region and the endpoint of the settings where a source has none."""
    # boto3 is slow to load, and only planning needs it.
    from compactor.adapters.aws.clients import aws_client  # noqa: PLC0415
    from compactor.adapters.aws.kinesis.streams import KinesisStreams, Source  # noqa: PLC0415

    made = {}
    for name, given in sources.items():
        region = given.get("region") or aws.region or None
        endpoint = given.get("endpoint_url") or aws.endpoint_url or None
        client = aws_client("kinesis", region, endpoint, attempts=_ATTEMPTS, timeout_seconds=aws.timeout_seconds)
        made[name] = Source(client, given.get("consumer", ""))
    return KinesisStreams(made)


_ATTEMPTS = 3  # throttling is waited for by what reads


def stray_rules(sources: Mapping[str, Mapping[str, str]]) -> dict[str, Strays]:
    """By source, what becomes of packed records that hash to another shard."""
    return {name: "drop" if given.get("strays") == "drop" else "keep" for name, given in sources.items()}

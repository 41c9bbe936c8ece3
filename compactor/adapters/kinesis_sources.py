"""The sources of the settings: how each process reaches their streams."""

from collections.abc import Mapping
from dataclasses import replace

from compactor.adapters.stores import StoreSpec
from compactor.core.logs.ports import Log
from compactor.sources.landing.lines import Strays


def kinesis_of(sources: Mapping[str, Mapping[str, str]], spec: StoreSpec) -> Log:
    """The streams of the sources, with the region and the endpoint of the settings where a source has none."""
    # boto3 is slow to load, and only planning needs it.
    from compactor.adapters.aws.kinesis.streams import KinesisStreams, Source  # noqa: PLC0415

    made = {}
    for name, given in sources.items():
        region, endpoint_url = given.get("region") or spec.region, given.get("endpoint_url") or spec.endpoint_url
        own = replace(spec, region=region, endpoint_url=endpoint_url, attempts=spec.attempts or _ATTEMPTS)
        made[name] = Source(own.client("kinesis"), given.get("consumer", ""))
    return KinesisStreams(made)


_ATTEMPTS = 3  # throttling is waited for by what reads


def stray_rules(sources: Mapping[str, Mapping[str, str]]) -> dict[str, Strays]:
    """By source, what becomes of packed records that hash to another shard."""
    return {name: "drop" if given.get("strays") == "drop" else "keep" for name, given in sources.items()}

"""Lets clients of Kafka into clusters of Amazon MSK by the rights that IAM gives, with tokens that are renewed."""

import os
import re
from collections.abc import Callable, Mapping

from compactor.core.errors import SettingsError
from compactor.telemetry.error_text import described

MECHANISM = "AWS_MSK_IAM"
"""The `sasl.mechanism` of settings. It is the name in Java; librdkafka sends the tokens by OAUTHBEARER."""

Token = tuple[str, float]
TokenOf = Callable[[str], Token]
"""Makes a token for a region; with when it ends, in seconds since 1970."""

_HOST = re.compile(r"\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::|$)")


def region_of(cluster: str, properties: Mapping[str, str]) -> str:
    """The region of a cluster: by the names of its brokers, else that of the environment.

    Raises:
        SettingsError: Neither tells it.
    """
    servers = properties.get("bootstrap.servers", "").split(",")
    found = next((match["region"] for each in servers if (match := _HOST.search(each.strip()))), "")
    region = found or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        what = "names of MSK that have the region, or AWS_REGION in the environment"
        raise SettingsError([f"kafka.clusters.{cluster}.bootstrap.servers: no region -> expected {what}"])
    return region


class Tokens:
    """What asks for tokens, as a client of librdkafka calls it. The first one is made at once, so that errors are told.

    Args:
        region: The region of the cluster.
        token_of: Makes the tokens.

    Raises:
        CompactorError: There are no credentials, or they are not valid.
    """

    def __init__(self, region: str, token_of: TokenOf) -> None:
        self._region, self._token_of = region, token_of
        self._first: Token | None = token_of(region)

    def __call__(self, _config: str) -> Token:
        """The next token. An error is one of the connection, which librdkafka repeats."""
        first, self._first = self._first, None
        try:
            return first or self._token_of(self._region)
        except Exception as exc:  # one of another kind ends no client either
            raise RuntimeError(described(exc)) from exc


def token_of_iam(region: str) -> Token:
    """Make a token by the credentials of AWS."""
    from compactor.adapters.aws.kafka_credentials import token  # noqa: PLC0415 - an extra, which few clusters need

    return token(region)

"""Client properties: those in the settings with their secrets, and those required by a guarantee.

Amazon MSK clusters may authorise clients by IAM, with tokens that are renewed.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compactor.core.errors import CompactorError, SettingsError, StoreUnavailable
from compactor.core.extras import need
from compactor.telemetry.error_text import described

_CRITICAL = 2  # the client would otherwise write to stderr what its errors say as well
Properties = dict[str, Any]

CONSUMER: Mapping[str, str | int] = {
    "group.id": "compactor",  # a client must have one; nothing is ever committed for it, and it is never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",  # an offset removed by retention is an error, not a reason to continue elsewhere
    "enable.partition.eof": True,
    "check.crcs": True,
    "fetch.wait.max.ms": 10,  # a response without records signals the end of a partition, and waits this long
    "fetch.queue.backoff.ms": 10,  # by default, a full queue makes a client pause for a second
    "queued.max.messages.kbytes": 8_192,  # each partition being read has a client
    "statistics.interval.ms": 5_000,  # show how far the client has fetched
}
"""Additional properties of a reading client."""


def client_properties(cluster: str, given: Mapping[str, str], found: Mapping[str, str]) -> Properties:
    """A client's properties.

    Raises:
        CompactorError: The cluster uses IAM, and there are no valid credentials.
    """
    by_iam: Properties = {}
    named = [key for key in ("sasl.mechanism", "sasl.mechanisms") if given.get(key) == MECHANISM]
    if named:
        by_iam = {named[0]: "OAUTHBEARER", "oauth_cb": Tokens(region_of(cluster, given), token_of_iam)}
    return {**found, **by_iam, "log_level": _CRITICAL}


def resolved(cluster: str, given: Mapping[str, str], *, is_fresh: bool = False) -> dict[str, str]:
    """A cluster's properties, with the current secrets in place of their references.

    Args:
        cluster: The cluster's name.
        given: Its properties in the settings.
        is_fresh: Whether to bypass the secrets cache.

    Raises:
        SettingsError: There is no secret at a reference.
        CompactorError: A secret cannot be read.
    """
    return {key: _resolved(f"kafka.clusters.{cluster}.{key}", value, is_fresh=is_fresh) for key, value in given.items()}


def has_changed(cluster: str, given: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Whether secrets may have changed since `resolved` returned `before`; False if access is denied."""
    try:
        return resolved(cluster, given, is_fresh=True) != before
    except StoreUnavailable:
        return True
    except CompactorError:
        return False


def _resolved(key: str, value: str, *, is_fresh: bool) -> str:
    kind, separator, name = value.partition(":")
    if separator and kind == "env":
        if name not in os.environ:
            raise SettingsError([f'{key}: "{value}": no such variable -> expected it in the environment'])
        return os.environ[name]
    if separator and kind == "file":
        try:
            return Path(name).read_text().rstrip("\n")
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "no UTF-8"
            raise SettingsError([f'{key}: "{value}": {why} -> expected a file with the secret']) from exc
    if separator and kind == "secretsmanager":
        return _secret_of_aws(name, is_fresh=is_fresh)
    return value


def _secret_of_aws(reference: str, *, is_fresh: bool) -> str:
    need("aws")
    from compactor.adapters.aws.kafka_credentials import secret_of  # noqa: PLC0415 - boto3 is slow to load

    return secret_of(reference, is_fresh=is_fresh)


MECHANISM = "AWS_MSK_IAM"
"""The `sasl.mechanism` in the settings, as in Java; librdkafka sends the tokens with OAUTHBEARER."""

Token = tuple[str, float]
TokenOf = Callable[[str], Token]
"""Creates a token for a region; also returns its expiry in seconds since 1970."""

_HOST = re.compile(r"\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::|$)")


def region_of(cluster: str, properties: Mapping[str, str]) -> str:
    """A cluster's region: from its brokers' names, or from the environment.

    Raises:
        SettingsError: Neither has it.
    """
    servers = properties.get("bootstrap.servers", "").split(",")
    found = next((match["region"] for each in servers if (match := _HOST.search(each.strip()))), "")
    region = found or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        what = "MSK names with a region, or AWS_REGION in the environment"
        raise SettingsError([f"kafka.clusters.{cluster}.bootstrap.servers: no region -> expected {what}"])
    return region


class Tokens:
    """Creates tokens when librdkafka asks. The first one is made at once, so that errors are raised here.

    Raises:
        CompactorError: There are no credentials, or they are invalid.
    """

    def __init__(self, region: str, token_of: TokenOf) -> None:
        self._region, self._token_of = region, token_of
        self._first: Token | None = token_of(region)

    def __call__(self, _config: str) -> Token:
        """The next token. An error counts as a connection error, which librdkafka retries."""
        first, self._first = self._first, None
        try:
            return first or self._token_of(self._region)
        except Exception as exc:  # other kinds of errors must not end a client either
            raise RuntimeError(described(exc)) from exc


def token_of_iam(region: str) -> Token:
    """Make an IAM token with the AWS credentials."""
    from compactor.adapters.aws.kafka_credentials import token  # noqa: PLC0415 - an extra, which few clusters need

    return token(region)

"""The properties of the clients: those of the settings with their secrets, and those that a promise depends on."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.adapters.kafka.msk_tokens import MECHANISM, Tokens, region_of, token_of_iam
from compactor.core.errors import CompactorError, SettingsError, StoreUnavailable
from compactor.core.extras import need

_CRITICAL = 2  # the client would write to stderr by itself what its errors say as well
Properties = dict[str, Any]

_CONSUMER: Mapping[str, str | int] = {
    "group.id": "compactor",  # a client has to name one; nothing is ever committed for it, and it is never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",  # an offset that retention removed is an error, and no reason to go on elsewhere
    "enable.partition.eof": True,
    "check.crcs": True,
    "fetch.wait.max.ms": 10,  # the end of a partition is told by an answer without records, which waits so long
    "fetch.queue.backoff.ms": 10,  # by default, a full queue makes a client pause for a second
    "queued.max.messages.kbytes": 8_192,  # each partition that is read has a client
    "statistics.interval.ms": 5_000,  # tell how far the client has fetched
}


def admin_properties(cluster: str, given: Mapping[str, str]) -> Properties:
    """The properties of a client that asks about topics.

    Raises:
        SettingsError: A secret is not where its reference says.
        CompactorError: A secret cannot be read; or the cluster lets in by IAM, and there are no valid credentials.
    """
    return client_properties(cluster, given, resolved(cluster, given))


def client_properties(cluster: str, given: Mapping[str, str], found: Mapping[str, str]) -> Properties:
    """As `admin_properties`, with the properties as `resolved` found them."""
    by_iam: Properties = {}
    named = [key for key in ("sasl.mechanism", "sasl.mechanisms") if given.get(key) == MECHANISM]
    if named:
        by_iam = {named[0]: "OAUTHBEARER", "oauth_cb": Tokens(region_of(cluster, given), token_of_iam)}
    return {**found, **by_iam, "log_level": _CRITICAL}


def consumer_properties(cluster: str, given: Mapping[str, str], found: Mapping[str, str] | None = None) -> Properties:
    """The properties of a client that reads; as `admin_properties`, or with those that `resolved` found."""
    made = admin_properties(cluster, given) if found is None else client_properties(cluster, given, found)
    return {**made, **_CONSUMER}


def resolved(cluster: str, given: Mapping[str, str], *, is_fresh: bool = False) -> dict[str, str]:
    """The properties of a cluster with secrets in place of their references, as they are now.

    Args:
        cluster: The name of the cluster.
        given: Its properties in the settings.
        is_fresh: Whether to ask again for secrets that are kept in memory for a while.

    Raises:
        SettingsError: A secret is not where its reference says.
        CompactorError: A secret cannot be read.
    """
    return {key: _resolved(f"kafka.clusters.{cluster}.{key}", value, is_fresh=is_fresh) for key, value in given.items()}


def has_changed(cluster: str, given: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Whether secrets may be others by now than `resolved` found before; False if they may not be read."""
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
            raise SettingsError([f'{key}: "{value}": there is no such variable -> expected it in the environment'])
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

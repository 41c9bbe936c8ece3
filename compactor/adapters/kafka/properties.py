"""The properties of the clients: those of the settings with their secrets, and those that a promise depends on."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.adapters.kafka.msk_tokens import MECHANISM, Tokens, region_of, token_of_iam
from compactor.core.errors import SettingsError

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
    "queued.max.messages.kbytes": 8_192,  # each range that is read, or is about to be, has a client
    "statistics.interval.ms": 5_000,  # tell how far the client has fetched
}


def admin_properties(cluster: str, given: Mapping[str, str]) -> Properties:
    """The properties of a client that asks about topics.

    Raises:
        SettingsError: A secret is not where its reference says.
        CompactorError: The cluster lets in by IAM, and there are no valid credentials.
    """
    resolved = {key: _resolved(f"kafka.clusters.{cluster}.{key}", value) for key, value in given.items()}
    by_iam: Properties = {}
    named = [key for key in ("sasl.mechanism", "sasl.mechanisms") if given.get(key) == MECHANISM]
    if named:
        by_iam = {named[0]: "OAUTHBEARER", "oauth_cb": Tokens(region_of(cluster, given), token_of_iam)}
    return {**resolved, **by_iam, "log_level": _CRITICAL}


def consumer_properties(cluster: str, given: Mapping[str, str]) -> Properties:
    """The properties of a client that reads; as `admin_properties`."""
    return {**admin_properties(cluster, given), **_CONSUMER}


def _resolved(key: str, value: str) -> str:
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
    return value

"""Reads secrets that AWS Secrets Manager keeps, by references such as `arn:...:secret:kafka#password`."""

import json
import time
from threading import Lock

from boto3.session import Session

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.errors import translated
from compactor.core.errors import SettingsError, StoreUnavailable

KEPT_SECONDS = 60.0
"""How long a secret is kept in memory: each range that is read has a client with secrets of its own."""

_REGION = 3  # the part of an ARN
_ATTEMPTS, _TIMEOUT_SECONDS = 3, 10.0  # a reader of a range waits for it
_kept: dict[str, tuple[float, str | None]] = {}
_lock = Lock()


def secret_of(reference: str, *, is_fresh: bool = False, session: Session | None = None) -> str:
    """The text of a secret; with `#key` behind its ARN, that of a key of the JSON object that it is.

    Args:
        reference: The ARN of the secret, with or without a key.
        is_fresh: Whether to ask even if an answer is kept.
        session: Has the credentials; by default those of the environment, the profile or the role.

    Raises:
        SettingsError: The secret has no such key, or is binary.
        CompactorError: It cannot be read.
    """
    arn, _, key = reference.partition("#")
    with _lock:
        until, text = _kept.get(arn, (0.0, None))
        if is_fresh or text is None or time.monotonic() >= until:
            text = _asked_again(arn, session, None if is_fresh else text)
            _kept[arn] = (time.monotonic() + KEPT_SECONDS, text)
    return _value(text, arn, key) if key else text


def _asked_again(arn: str, session: Session | None, known: str | None) -> str:
    """The text of a secret. If AWS does not answer, the one that is known is more likely right than none."""
    try:
        return _asked(arn, session)
    except StoreUnavailable:
        if known is None:
            raise
        return known


def _asked(arn: str, session: Session | None) -> str:
    with translated(arn):
        region = arn.split(":")[_REGION]
        client = aws_client(
            "secretsmanager", region, attempts=_ATTEMPTS, timeout_seconds=_TIMEOUT_SECONDS, session=session
        )
        found = client.get_secret_value(SecretId=arn)
    if "SecretString" not in found:
        raise SettingsError([f"{arn}: a binary secret -> expected a text"])
    return str(found["SecretString"])


def _value(text: str, arn: str, key: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(key), str):
        raise SettingsError([f'{arn}: no text under "{key}" -> expected a JSON object with it'])
    return str(found[key])

"""AWS credentials for Kafka clients: Secrets Manager secrets, and IAM tokens for MSK."""

import json
import time
from threading import Lock

from boto3.session import Session
from botocore.credentials import CredentialProvider, Credentials

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.errors import translated
from compactor.core.errors import CredentialsMissing, SettingsError, StoreUnavailable
from compactor.core.extras import need


class _Given(CredentialProvider):
    def __init__(self, found: Credentials) -> None:
        super().__init__()
        self._found = found

    def load(self) -> Credentials:
        return self._found


def token(region: str, session: Session | None = None) -> tuple[str, float]:
    """Make an IAM token for MSK.

    Args:
        region: The cluster's region.
        session: Source of the credentials; by default the environment, the profile or the role.

    Returns:
        The token, and its expiry in seconds since 1970.

    Raises:
        CredentialsMissing: There are no credentials.
        CompactorError: They cannot be read or renewed.
    """
    need("msk")
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415 - an extra that secrets do not need

    with translated("MSK credentials"):  # roles are assumed, and their tokens renewed, on demand
        found = (session or Session()).get_credentials()
        if found is None:
            raise CredentialsMissing("no AWS credentials: set AWS_PROFILE or run aws sso login")
        frozen = found.get_frozen_credentials()
        given = Credentials(str(frozen.access_key), str(frozen.secret_key), frozen.token)
        made, ends_at_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(region, _Given(given))
    return made, ends_at_ms / 1000


KEPT_SECONDS = 60.0
"""How long a secret is cached: every reader of a range has its own client, which needs the secrets."""

_REGION = 3  # the part of an ARN
_ATTEMPTS, _TIMEOUT_SECONDS = 3, 10.0  # a reader of a range waits for it
_kept: dict[str, tuple[float, str | None]] = {}
_lock = Lock()


def secret_of(reference: str, *, is_fresh: bool = False, session: Session | None = None) -> str:
    """A secret's text; with `#key` after its ARN, the text under that key in its JSON object.

    Args:
        reference: The secret's ARN, with or without a key.
        is_fresh: Whether to bypass the cache.
        session: Source of the credentials; by default the environment, the profile or the role.

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
    """A secret's text. If AWS does not respond, the known text is probably still right."""
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
        raise SettingsError([f"{arn}: a binary secret -> expected text"])
    return str(found["SecretString"])


def _value(text: str, arn: str, key: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get(key), str):
        raise SettingsError([f'{arn}: no text under "{key}" -> expected a JSON object with it'])
    return str(found[key])

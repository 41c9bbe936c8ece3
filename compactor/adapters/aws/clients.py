"""Clients of AWS. Credentials come from where AWS tools find them: environment, profile, role."""

from functools import partial
from typing import Any

from boto3.session import Session
from botocore import UNSIGNED
from botocore.config import Config

from compactor.adapters.aws.errors import translated

_CONNECTIONS = 64  # as many as there are threads that share a client
_CONNECT_TIMEOUT_SECONDS = 5
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 8


def aws_client(
    service: str,
    region: str | None = None,
    endpoint_url: str | None = None,
    *,
    attempts: int = _ATTEMPTS,
    timeout_seconds: float = _TIMEOUT_SECONDS,
    is_signed: bool = True,
    session: Session | None = None,
) -> Any:
    """A client that is safe to share between threads, but not between processes.

    Args:
        service: As boto3 names it.
        region: None to take it from the surroundings.
        endpoint_url: A server other than AWS; None for AWS itself.
        attempts: How often a request is sent at most, with growing pauses. Throttling and 5xx are repeated.
        timeout_seconds: How long to wait for the answer to a request before it is sent again.
        is_signed: Whether requests are signed, which needs credentials.
        session: What makes it; a new one if none is given. One for many clients reads AWS's models once.

    Raises:
        AccessError: There is no region, or the surroundings are set up wrong.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=_CONNECTIONS,
        connect_timeout=min(_CONNECT_TIMEOUT_SECONDS, timeout_seconds),
        read_timeout=timeout_seconds,
        # Only AWS gives every bucket a host name of its own.
        s3={"addressing_style": "path" if endpoint_url else "auto"},
        signature_version=None if is_signed else UNSIGNED,
    )
    with translated(endpoint_url or service):
        make_client: Any = (session or Session()).client
        return make_client(service, region_name=region, endpoint_url=endpoint_url, config=config)


s3_client = partial(aws_client, "s3")
dynamodb_client = partial(aws_client, "dynamodb")
sqs_client = partial(aws_client, "sqs")
# Whoever sends measurements keeps them and comes back, so one request need not be waited for as long as others.
cloudwatch_client = partial(aws_client, "cloudwatch", attempts=2, timeout_seconds=10)

"""Creates AWS clients. Credentials come from the usual places: environment, profile, role."""

from functools import cache, partial
from typing import Any

from boto3.session import Session
from botocore import UNSIGNED
from botocore.config import Config
from botocore.loaders import Loader
from botocore.session import get_session

from compactor.adapters.aws.errors import translated
from compactor.adapters.aws.whole_heads import require_whole_heads

_CONNECTIONS = 64  # as many as threads that share a client
_CONNECT_TIMEOUT_SECONDS = 5
_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 8  # with increasing pauses; throttling and 5xx are retried


def aws_client(
    service: str,
    region: str | None = None,
    endpoint_url: str | None = None,
    *,
    attempts: int | None = None,
    timeout_seconds: float = _TIMEOUT_SECONDS,
    is_signed: bool = True,
    session: Session | None = None,
) -> Any:
    """A client that is safe to share between threads, but not between processes.

    The first arguments are fields of `compactor.adapters.stores.StoreSpec`. Unsigned requests need no credentials.
    Clients of one session share its credentials; by default each has its own session.

    Raises:
        AccessError: There is no region, or the environment is misconfigured.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts or _ATTEMPTS},
        max_pool_connections=_CONNECTIONS,
        connect_timeout=min(_CONNECT_TIMEOUT_SECONDS, timeout_seconds),
        read_timeout=timeout_seconds,
        # Only AWS has a host name for every bucket.
        s3={"addressing_style": "path" if endpoint_url else "auto"},
        signature_version=None if is_signed else UNSIGNED,
    )
    with translated(endpoint_url or service):
        make_client: Any = (session or aws_session()).client
        client = make_client(service, region_name=region, endpoint_url=endpoint_url, config=config)
    require_whole_heads(client)
    return client


def aws_session() -> Session:
    """A new session in the current environment. All sessions share the first one's model folders.

    Raises:
        BotoCoreError: The environment is misconfigured.
    """
    core = get_session()
    core.register_component("data_loader", _models())
    session = Session(botocore_session=core)
    paths = _models().search_paths
    paths[:] = dict.fromkeys(paths)  # each session adds the same one
    return session


@cache
def _models() -> Loader:
    """AWS's service descriptions, shared by all clients: reading them takes 50 ms."""
    loader: Loader = get_session().get_component("data_loader")
    return loader


s3_client = partial(aws_client, "s3")
dynamodb_client = partial(aws_client, "dynamodb")
sqs_client = partial(aws_client, "sqs")
# Metrics that could not be sent are queued and sent again, so a request may fail early.
cloudwatch_client = partial(aws_client, "cloudwatch", attempts=2, timeout_seconds=10)

"""A local stand-in for AWS in this process, and clients of it that are made quickly."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import botocore.session
from botocore.loaders import create_loader

REGION = "eu-west-1"


@contextmanager
def stand_in() -> Iterator[str]:
    """Serve S3, DynamoDB, SQS, CloudWatch and Glue by moto on a free port; the URL."""
    from compactor.demo.local_aws import started  # noqa: PLC0415 - slow to import, and few tests need it

    # A line of log for every request would bury what a failed test has to say.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = started("127.0.0.1")
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def share_service_models() -> None:
    """Have all sessions of botocore in this process read the description of each service once."""
    botocore.session.create_loader = cache(create_loader)

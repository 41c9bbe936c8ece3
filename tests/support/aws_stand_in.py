"""A local stand-in for AWS in this process, and clients of it that are made quickly."""

import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import botocore.hooks
import botocore.session
from botocore.hooks import EventAliaser
from botocore.loaders import create_loader

REGION = "eu-west-1"


@contextmanager
def stand_in() -> Iterator[str]:
    """Serve S3, DynamoDB, SQS, CloudWatch and Glue by moto on a free port; the URL."""
    from compactor.demo.moto_server import started  # noqa: PLC0415 - slow to import, and few tests need it

    # A line of log for every request would bury what a failed test has to say.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = started("127.0.0.1")
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def share_service_models() -> None:
    """Have all sessions of botocore in this process read the description of each service once.

    And spell each name of an event once, and ask a function itself for its parameters: half of the time that a client
    takes to make went into that.
    """
    botocore.session.create_loader = cache(create_loader)
    aliaser: Any = EventAliaser
    alias = aliaser._alias_event_name
    spelled: dict[str, str] = {}

    def alias_once(of: EventAliaser, name: str) -> str:
        if name not in spelled:
            spelled[name] = alias(of, name)
        return spelled[name]

    aliaser._alias_event_name = alias_once
    hooks: Any = botocore.hooks
    accepts_kwargs = hooks.accepts_kwargs

    def told_by_code(handler: Any) -> bool:
        code = getattr(handler, "__code__", None)
        return bool(code.co_flags & inspect.CO_VARKEYWORDS if code else accepts_kwargs(handler))

    hooks.accepts_kwargs = told_by_code

"""An AWS emulator on this machine: moto, in a process of its own, on a free port of 127.0.0.1."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.core.errors import OperatorError

_HOST = "127.0.0.1"
_END_SECONDS = 10.0  # it has nothing to finish, so it ends at once

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo", "AWS_EC2_METADATA_DISABLED": "true"}
"""AWS clients require credentials; the emulator ignores them. These belong to no account."""


@contextmanager
def local_aws() -> Iterator[str]:
    """Start the emulator at the URL that the context gives, and end it with the context.

    Raises:
        OperatorError: It did not start.
    """
    # It has its own session: Ctrl-C must not end it before the commands that still use it.
    server = subprocess.Popen(
        [sys.executable, "-m", "compactor.demo.moto_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **CREDENTIALS},
        start_new_session=True,
        text=True,
    )
    try:
        assert server.stdout is not None and server.stderr is not None  # noqa: S101, PT018 - asked for above
        url = server.stdout.readline().strip()
        if not url:
            last = (server.stderr.read().strip().splitlines() or ["no message"])[-1]
            raise OperatorError(f"the AWS emulator did not start ({last}); expected moto: pip install .[demo]")
        yield url
    finally:
        server.kill()
        server.communicate(timeout=_END_SECONDS)

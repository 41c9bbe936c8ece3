"""An AWS emulator on this machine: moto, in a process of its own, on a free port of 127.0.0.1."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

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
    # Its warnings go to a file: a pipe that is not read is full after 64 KiB, and the emulator would wait for ever.
    with TemporaryFile("w+") as errors:
        # It has its own session: Ctrl-C must not end it before the commands that still use it.
        server = subprocess.Popen(
            [sys.executable, "-m", "compactor.demo.moto_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **CREDENTIALS},
            start_new_session=True,
            text=True,
        )
        try:
            assert server.stdout is not None  # noqa: S101 - asked for above
            url = server.stdout.readline().strip()
            if not url:
                server.wait(_END_SECONDS)
                errors.seek(0)
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise OperatorError(f"the AWS emulator did not start ({last}); expected moto: pip install .[demo]")
            yield url
        finally:
            server.kill()
            server.communicate(timeout=_END_SECONDS)

"""Calls of `compactor compact` on a folder, and files for it."""

import os
from pathlib import Path

from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command


def write(path: Path, data: bytes) -> None:
    """Write a file as if it were done an hour ago, so that no call waits for it to settle."""
    path.write_bytes(data)
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)


def call(*arguments: object) -> Result:
    """Call `compactor compact`."""
    return CliRunner().invoke(command, ["compact", *map(str, arguments)])

"""The command, in this process or in a terminal of a given width."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Sequence

from click.testing import CliRunner, Result

from compactor.cli.entry import compactor

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def call(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(compactor, arguments)


def on_terminal(columns: int, command: Sequence[str]) -> list[str]:
    """Run a command in a terminal of so many columns; returns the lines that it shows, without styles."""
    data = sent_to_terminal(columns, command)
    return [line.rpartition("\r")[2] for line in _STYLE.sub("", data).replace("\r\n", "\n").split("\n")]


def sent_to_terminal(columns: int, command: Sequence[str], *, interrupt_at: str = "") -> str:
    """Run a command in a terminal of so many columns; returns all that it writes.

    Args:
        columns: The width.
        command: The command.
        interrupt_at: Press Ctrl-C once the command has written this.
    """
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment["TERM"] = "xterm"
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        data = b""
        while piece := _read(mine):
            data += piece
            if interrupt_at and interrupt_at.encode() in data:
                process.send_signal(signal.SIGINT)
                interrupt_at = ""
    os.close(mine)
    return data.decode()


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # EIO: the process has ended
        return b""

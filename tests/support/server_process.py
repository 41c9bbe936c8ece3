"""Processes of servers that tests start, wait for and end."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_START_SECONDS = 300.0  # on a machine that does much else
_END_SECONDS = 60.0


@dataclass
class ServerProcess:
    """A server that may be started and killed any number of times.

    Attributes:
        name: What it is, for people.
        log: Receives what it prints.
        answers: Whether it answers.
    """

    name: str
    log: Path
    answers: Callable[[], bool]
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start it, and wait until it answers.

        Args:
            command: The program and its arguments.
            environment: Its variables; None for those of this process.

        Raises:
            RuntimeError: It ended, or did not answer in time.
        """
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(_END_SECONDS)
            self._process = None


def free_ports(number: int) -> list[int]:
    """Different ports of the loopback address that nothing listens on."""
    taken = [socket.socket() for _ in range(number)]
    try:
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in taken]
    finally:
        for each in taken:
            each.close()

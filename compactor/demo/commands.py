"""Runs a user's commands in separate processes, and shows each one first."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compactor.core.errors import CompactorError
from compactor.core.text.safe_text import quoted

Echo = Callable[..., None]
"""Prints lines as `compactor.cli.ui.terminal.echo` does: each argument stays one line whatever it holds."""

_END_SECONDS = 60.0  # an interrupted run finishes its batch first


class Terminated(KeyboardInterrupt):
    """SIGTERM. It ends the demo as Ctrl-C does."""


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for as long as the context lasts. SIGTERM ends the demo, and all that it has started, as Ctrl-C does."""

    def terminate(_number: int, _frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with tempfile.TemporaryDirectory(prefix="compactor-demo-") as folder:
            yield Path(folder)
    finally:
        signal.signal(signal.SIGTERM, before)


def own_variables() -> dict[str, str]:
    """The variables of this process without those of the compactor: the user's settings must not apply."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COMPACTOR_")}


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs commands with these variables."""

    environment: Mapping[str, str]
    echo: Echo

    def run(self, *arguments: str) -> None:
        """Run one command.

        Raises:
            CompactorError: Its exit code was not 0.
        """
        command = " ".join(["compactor", *map(quoted, arguments)])
        self.echo("", f"$ {command}")
        words = [sys.executable, "-m", "compactor", *arguments]
        process = subprocess.Popen(words, env=self.environment)  # noqa: S603
        try:
            code = process.wait()
        finally:
            _end(process)
        if code != 0:
            raise CompactorError(f"`{command}` ended with {code}, expected 0")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that still runs because this process was interrupted."""
    if process.poll() is not None:
        return
    # Ctrl-C has reached the command itself; a second signal would cut its batch short.
    if not isinstance(sys.exception(), KeyboardInterrupt) or isinstance(sys.exception(), Terminated):
        process.terminate()
    try:
        process.wait(_END_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()

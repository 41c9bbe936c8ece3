"""A warm process that forks jobs: each is a process of its own, which starts in milliseconds as all is imported.

python -m tests.faults.nursery reads one request a line and answers each with one line, both JSON.
"""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from compactor.adapters.local.native.module import is_installed

ROOT = Path(__file__).resolve().parents[2]
STOPPED = "stopped"
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Job:
    """A plain job that was started.

    Attributes:
        output: Where everything goes that it prints.
    """

    nursery: "Nursery"
    process_id: int
    output: Path

    def wait(self) -> int | str:
        """Wait until it ends or stops: its exit code, minus the number of the signal that ended it, or `STOPPED`."""
        ended: int | str | None = self.nursery.ask({"wait": self.process_id})
        if ended is None:
            os.kill(self.process_id, signal.SIGKILL)
        assert ended is not None, f"did not end in {PATIENCE_SECONDS:.0f} s:\n{self.printed()}"
        return ended

    def go_on(self) -> None:
        """Wake a job that stopped."""
        os.kill(self.process_id, signal.SIGCONT)

    def kill(self) -> None:
        """End it where it stands."""
        os.kill(self.process_id, signal.SIGKILL)

    def printed(self) -> str:
        return self.output.read_text()


class Nursery:
    """Starts plain jobs; those that still run when the context ends are killed.

    Args:
        engine: Of all of them.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.communicate()

    def start(self, config: Path, *arguments: str) -> Job:
        """Start `tests.faults.plain_job` with these arguments."""
        output = config.parent / f"job-{time.monotonic_ns()}.txt"
        return Job(
            self, self.ask({"start": [str(config), "--engine", self.engine, *arguments], "output": str(output)}), output
        )

    def ask(self, request: Mapping[str, Any]) -> Any:
        """Send a request, and wait for its answer."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the process that forks jobs is gone; what it said last is above"
        return json.loads(answer)


def serve() -> None:
    """Carry out requests until there are no more."""
    from tests.faults import plain_job  # noqa: PLC0415 - only the server needs to be warm

    if is_installed():
        importlib.import_module("compactor_native")
    gc.freeze()  # so that the children do not copy everything at their first collection
    for line in sys.stdin:
        request = json.loads(line)
        answer = _start(plain_job.main, request) if "start" in request else _wait(request["wait"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _start(main: Any, request: Mapping[str, Any]) -> int:
    process_id = os.fork()
    if process_id:
        return process_id
    code = 70  # as of a program that failed for reasons of its own
    try:
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT, 0o600)
        for number in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        code = main(request["start"])
    except BaseException:  # noqa: BLE001 - whatever it is, the child must not go on as a second server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(process_id: int) -> int | str | None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(process_id, os.WNOHANG | os.WUNTRACED)
        if found:
            return STOPPED if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(_LOOK_SECONDS)
    return None


if __name__ == "__main__":
    serve()

"""A warm process that forks runs of pytest: packages of others are imported once, this project by each run.

python -m tests.guards.warm runs in a copy of the code. It reads one request a line and answers each with one line, both
JSON. Each run is a process of its own, which imports the project's modules as they are then.
"""

import compileall
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any, Self

OWN = frozenset({"__main__", "bench", "compactor", "conftest", "deploy", "lambdas", "tests", "tools"})
"""Packages of this project, which a run imports itself: one of their modules lacks a guard."""

PLUGINS = frozenset({"_hypothesis_pytestplugin", "hypothesis", "pytest_timeout", "xdist"})
"""pytest has to import them itself, to see what their asserts compare."""

PREPARED_FOR_FORKS = frozenset({"jemalloc_bg_thd"})
"""Threads that begin anew in a fork: the one of pyarrow's allocator."""

NOT_ENDED = -1
_LOOK_SECONDS = 0.005


class WarmPytest:
    """Runs pytest in a folder; what still runs when the context ends is killed.

    Args:
        folder: With the code, its tests and the configuration of pytest.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        self._scratch = tempfile.TemporaryDirectory(prefix="compactor-guards-")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.guards.warm"],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()  # it ends with its input
        self._scratch.cleanup()

    def run(self, arguments: Sequence[str], patience_seconds: float) -> tuple[int, str]:
        """Run pytest once: its exit code, or `NOT_ENDED`, and what it printed.

        Args:
            arguments: Of pytest.
            patience_seconds: How long it may take.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        output, modules = (Path(self._scratch.name, name) for name in ("output.txt", "modules.json"))
        request = {
            "arguments": list(arguments),
            "output": str(output),
            "modules": str(modules),
            "seconds": patience_seconds,
        }
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the process that forks runs of pytest is gone; what it said last is above"
        return json.loads(answer), output.read_text(errors="replace")


def compile_once(package: Path) -> None:
    """Compile a package for all runs; a module that is another one then is compiled anew, and as it was once more."""
    # By default, byte code is told from stale byte code by whole seconds and the length of the code.
    compileall.compile_dir(package, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def serve() -> int:
    """Carry out requests until there are no more; the exit code of this process, which may be a fork by then."""
    for line in sys.stdin:
        request = json.loads(line)
        process_id = os.fork()
        if not process_id:
            return _run(request)
        answer = _wait(process_id, request["seconds"])
        modules = Path(request["modules"])
        if modules.exists():  # else the run was killed
            warm_up(json.loads(modules.read_text()))
            modules.unlink()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


def warm_up(names: Iterable[str]) -> None:
    """Import modules; those of this project, plugins of pytest, and what cannot be imported alone are left out."""
    for name in names:
        if name.partition(".")[0] not in OWN | PLUGINS and name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that the children do not copy everything at their first collection
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    own = [name for name in threads if name not in PREPARED_FOR_FORKS]
    assert len(own) == 1, f"expected one thread, for a fork takes along no other: {own}"
    assert "compactor" not in sys.modules, "a run has to import the project itself"


def _run(request: dict[str, Any]) -> int:
    """Run pytest in this process; what it imported is kept for the next ones."""
    os.setsid()
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    import pytest  # noqa: PLC0415 - this module is imported for its other half, too

    code = int(pytest.main(request["arguments"]))
    Path(request["modules"]).write_text(json.dumps(list(sys.modules)))
    return code


def _wait(process_id: int, seconds: float) -> int:
    """Wait for the end of a run; none of its processes goes on after it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(process_id, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_LOOK_SECONDS)
    with suppress(ProcessLookupError):  # it has not come to its group yet
        os.killpg(process_id, signal.SIGKILL)
    os.kill(process_id, signal.SIGKILL)
    os.waitpid(process_id, 0)
    return NOT_ENDED


if __name__ == "__main__":
    sys.exit(serve())

"""Takes each guard out of a copy of the code, and sees that a test fails.

python -m tests.guards [WORD ...] does so for the guards whose name or module has one of these words. Each copy lacks
one guard at a time; several copies are tested at once, for most tests wait more than they compute. Each run of tests
is a process of its own, forked from one that has what they import from elsewhere.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.guards import GUARDS, Guard, marks, without
from tests.guards.warm import NOT_ENDED, WarmPytest, compile_once

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "compactor",
    "config",
    "deploy",
    "docs",
    "examples",
    "lambdas",
    "locks",
    "tests",
    "tools",
    "pyproject.toml",
    "README.md",
)
COPIES = 3
Given = TypeVar("Given")
Result = TypeVar("Result")
PASSED, FAILED = 0, 1  # exit codes of pytest
PATIENCE_SECONDS = 900.0
MARKED = "not faults and not large"
"""Also cases that `make test` leaves to `make test-full`."""

ARGUMENTS = ("-x", "-q", "-rfE", "--tb=line", "--no-header", "-p", "no:cacheprovider", "-m", MARKED)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the code and its tests.

    Attributes:
        pytest: Runs there.
    """

    folder: Path
    pytest: WarmPytest


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of taking a guard out.

    Attributes:
        noticed_by: The test that failed; empty if none did.
        fault: Why the trial says nothing.
        seconds: How long it took.
    """

    guard: Guard
    noticed_by: str = ""
    fault: str = ""
    seconds: float = 0.0

    @property
    def is_healthy(self) -> bool:
        return bool(self.noticed_by)


def main(words: Sequence[str]) -> int:
    modules = {name: str(path) for name, [path, *_] in marks(ROOT / "compactor").items()}
    tested = [guard for guard in GUARDS if guard.tests]
    chosen = [each for each in tested if not words or any(word in each.name + modules[each.name] for word in words)]
    if not chosen:
        say(f"no guard has {' or '.join(words)} in its name or module")
        return 1
    # A copy has none of the tools of .tools, so tests that need one are left out, whatever else the caller requires.
    os.environ.pop("REQUIRE", None)
    number = min(COPIES, len(chosen))
    with ExitStack() as stack:
        copies = SimpleQueue[Copy]()
        for _ in range(number):
            copies.put(stack.enter_context(code_copy()))
        threads = stack.enter_context(ThreadPoolExecutor(number))
        trials = []
        for trial in threads.map(partial(on_a_copy, copies, tried), chosen):
            trials.append(trial)
            say(row(trial))
    guarded = sum(trial.is_healthy for trial in trials)
    say(f"{guarded} of {len(trials)} guards are needed and guarded: without any of them a test fails")
    return 0 if guarded == len(trials) else 1


@contextmanager
def code_copy() -> Iterator[Copy]:
    """A folder with a copy of the code and its tests, which goes with the context."""
    with tempfile.TemporaryDirectory(prefix="compactor-guards-") as name:
        folder = Path(name)
        for each in COPIED:
            _copy(ROOT / each, folder / each)
        compile_once(folder / "compactor")
        with WarmPytest(folder) as pytest:
            yield Copy(folder, pytest)


def on_a_copy(copies: SimpleQueue[Copy], work: Callable[[Copy, Given], Result], given: Given) -> Result:
    """Work on a copy that no other thread has; waits until there is one."""
    copy = copies.get()
    try:
        return work(copy, given)
    finally:
        copies.put(copy)


def tried(copy: Copy, guard: Guard) -> Trial:
    """Run a guard's tests without it; the copy of the code is as before afterwards."""
    module, code = taken_out(copy.folder, guard)
    started = time.monotonic()
    try:
        exit_code, output = run_tests(copy, guard.tests)
    finally:
        module.write_text(code)
    seconds = time.monotonic() - started
    if exit_code == PASSED:
        return Trial(guard, fault="no test failed", seconds=seconds)
    failures = re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", output, re.MULTILINE)
    if exit_code != FAILED or not failures:
        return Trial(guard, fault=f"the tests did not run: {output.strip()[-500:]}", seconds=seconds)
    # A test that always fails, or that the other copies slow down too much, would hide that nothing needs the guard.
    if run_tests(copy, failures[:1])[0] != PASSED:
        return Trial(guard, fault=f"{failures[0]} fails with the guard, too", seconds=seconds)
    return Trial(guard, noticed_by=failures[0], seconds=seconds)


def taken_out(folder: Path, guard: Guard) -> tuple[Path, str]:
    """Take a guard out of a copy of the code: the module that had it, and its code with it."""
    [module] = marks(folder / "compactor")[guard.name]
    code = module.read_text()
    module.write_text(without(code, guard))
    return module, code


def run_tests(copy: Copy, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests of the copy: the exit code of pytest, and what it printed."""
    code, output = copy.pytest.run([*ARGUMENTS, *tests], PATIENCE_SECONDS)
    return code, output if code != NOT_ENDED else f"they did not end in {PATIENCE_SECONDS:.0f} s"


def row(trial: Trial) -> str:
    """A row of the table."""
    return f"{trial.seconds:5.1f} s  {trial.guard.name}\n         {trial.noticed_by or 'UNGUARDED: ' + trial.fault}"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

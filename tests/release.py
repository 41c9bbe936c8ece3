"""Runs targets of the Makefile one after the other, all of them whatever comes of each, and sums up at the end.

python -m tests.release [--again] [--beside TARGET] TARGET ... is what `make test-all` does with all that a release has
to pass. It takes hours, so a target that has passed on the very same files is not run again, unless it is asked for:
the files are those of `INPUTS`, or of the whole commit for a target that is not named there.
One target that measures no time may run beside the others, from the start on; what it prints is shown at the end.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / ".tools" / "release-parts.json"

_PRODUCT = (
    "Makefile",
    "pyproject.toml",
    "locks",
    "compactor",
    "native",
    "config",
    "glue_entry.py",
    "lambdas",
    "deploy",
    "tools",
)
_HARNESS = (*_PRODUCT, "tests/support", "tests/cases", "tests/protocol", "spec")
"""What `tests/support` needs, too."""
_MODEL = ("Makefile", "spec", *(f"tests/protocol/{name}.py" for name in ("__main__", "configurations", "held", "tlc")))
_FAULTS = (*_HARNESS, "tests/faults", "tests/conftest.py")
_MEASURED = (*_HARNESS, "tests/faults", "bench")

INPUTS: Mapping[str, Sequence[str]] = {
    "checkov": _PRODUCT,
    "simulate": (*_HARNESS, "tests/simulation", "tests/guards"),
    "spec-full": _MODEL,
    "spec-guards": _MODEL,
    "test-faults-kills": _FAULTS,
    "test-faults-s3": _FAULTS,
    "test-hostile-native": (*_MEASURED, "tests/hostile"),
    "test-hostile-spark": (*_MEASURED, "tests/hostile"),
    "test-hostile-search": (*_MEASURED, "tests/hostile"),
    "bench-guard": _MEASURED,
    "bench-cliffs": _MEASURED,
    "soak": (*_HARNESS, "tests/soak", "tests/faults"),
}
"""The files and folders that a part runs or reads. It has to pass again once one of them has changed."""

RUN_BY = (("java", "-version"), ("cargo", "--version"), ("go", "version"))
OPTIONS = ("SEED", "SEEDS", "DAYS", "MINUTES", "ENGINE", "PYTEST_ARGS", "GUARD_ARGS", "CLIFFS_ARGS")
"""Of targets of the Makefile: what passed with one of them is not remembered."""


@dataclass(frozen=True)
class Part:
    """What came of one part.

    Attributes:
        earlier: Whether it passed in an earlier run on the same files.
    """

    name: str
    exit_code: int
    seconds: float
    earlier: bool = False

    def line(self) -> str:
        """A line of the summary."""
        ended = "passed" if self.exit_code == 0 else f"FAILED with exit code {self.exit_code}"
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"  {self.name:<20} {minutes:>4} min {seconds:02} s  {ended}{' earlier on these files' * self.earlier}"


class PassedParts:
    """Remembers which parts passed on which files; nothing is remembered where files differ from the commit.

    Args:
        file: Where they are kept.
        files_of: The fingerprint of the files of a part; None where files differ from the commit, or there is none.
    """

    def __init__(self, file: Path, files_of: Callable[[str], str | None]) -> None:
        self._file, self._files_of = file, files_of

    def files_of(self, name: str) -> str | None:
        """The fingerprint of the files that a part runs or reads as they are now."""
        return self._files_of(name)

    def all(self) -> dict[str, Part]:
        """Those that passed on the files as they are now, by name."""
        kept = {name: Part(**part["part"]) for name, part in self._kept().items() if self._is_of_now(name, part)}
        return {name: replace(part, earlier=True) for name, part in kept.items()}

    def add(self, part: Part, files: str) -> None:
        """Remember one that passed on these files."""
        kept = {**self._kept(), part.name: {"files": files, "part": asdict(part)}}
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(kept, indent=1))

    def _is_of_now(self, name: str, part: Mapping[str, Any]) -> bool:
        files = self._files_of(name)
        return files is not None and part["files"] == files

    def _kept(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._file.read_text())
        except (FileNotFoundError, ValueError):  # a stop may have cut it short
            return {}
        of_this_form = {"files", "part"}
        return {name: each for name, each in kept.items() if isinstance(each, dict) and each.keys() == of_this_form}


def committed_files(name: str) -> str | None:
    """The fingerprint of the files that a part runs or reads, and of what runs them.

    None if any file differs from the commit, or if an option makes a part another one.
    """
    tree = _asked("git", "ls-tree", "-r", "HEAD", "--", *INPUTS.get(name, ["."]))
    if not tree or _asked("git", "status", "--porcelain") != "" or options_of(os.environ):
        return None
    return hashlib.sha256("\n".join([tree, *tools()]).encode()).hexdigest()


@cache
def tools() -> tuple[str, ...]:
    """What runs the parts, with its versions."""
    return (sys.version, *(str(_asked(*each)) for each in RUN_BY))


def options_of(environment: Mapping[str, str]) -> list[str]:
    """The options that make takes from its command line or the environment, and that a release is not tested with."""
    on_the_line = [word.partition("=")[0] for word in shlex.split(environment.get("MAKEFLAGS", "")) if "=" in word]
    return [name for name in OPTIONS if environment.get(name) or name in on_the_line]


def _asked(*command: str) -> str | None:
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return (done.stdout + done.stderr).strip()


def run_parts(
    commands: Mapping[str, Sequence[str]],
    passed: PassedParts,
    beside: str = "",
) -> int:
    """Run each command, and print one line for each of them; the exit code is 0 if all have passed.

    Args:
        commands: By the name of the part.
        passed: Those that need no other run. A part is added if its files stayed as they were while it ran.
        beside: The part that runs beside the others, if any; what it prints comes after all that they print.
    """
    earlier, before = passed.all(), {name: passed.files_of(name) for name in commands}
    parts = {name: part for name, part in earlier.items() if name in commands}

    def ended(part: Part) -> None:
        parts[part.name] = part
        files = before[part.name]
        if part.exit_code == 0 and files is not None and passed.files_of(part.name) == files:
            passed.add(part, files)

    with ThreadPoolExecutor(1) as threads, tempfile.TemporaryFile("w+") as printed:
        asked = [name for name in commands if name not in earlier]
        waited_for = [threads.submit(_run, name, commands[name], printed) for name in asked if name == beside]
        for name in asked:
            if name != beside:
                print(f"== {name}", flush=True)  # noqa: T201 - a program
                ended(_run(name, commands[name]))
        for part in waited_for:
            ended(part.result())
            printed.seek(0)
            print(f"== {beside}\n{printed.read()}", end="", flush=True)  # noqa: T201 - a program
    failed = [name for name in commands if parts[name].exit_code]
    closing = f"FAILED: {', '.join(failed)}" if failed else f"all {len(parts)} parts passed"
    lines = [parts[name].line() for name in commands]
    print("\n".join(["== summary", *lines, closing]), flush=True)  # noqa: T201 - a program
    return 1 if failed else 0


def _run(name: str, command: Sequence[str], output: IO[str] | None = None) -> Part:
    started = time.monotonic()
    code = subprocess.run(command, check=False, stdout=output, stderr=output and subprocess.STDOUT).returncode
    return Part(name, code, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.release")
    parser.add_argument("--again", action="store_true", help="run also what passed on these files")
    parser.add_argument("--beside", metavar="TARGET", default="", help="run this one beside the others")
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    options = parser.parse_args()
    if options.again:
        PASSED.unlink(missing_ok=True)
    targets = {target: ["make", "--no-print-directory", target] for target in options.targets}
    return run_parts(targets, PassedParts(PASSED, committed_files), beside=options.beside)


if __name__ == "__main__":
    sys.exit(main())

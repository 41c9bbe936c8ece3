"""Runs targets of the Makefile one after the other, all of them whatever comes of each, and sums up at the end.

python -m tests.release [--again] [--beside TARGET] TARGET ... is what `make test-all` does with all that a release has
to pass. It takes hours, so a target that has passed on the very same commit is not run again, unless it is asked for.
One target that measures no time may run beside the others, from the start on; what it prints is shown at the end.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / ".tools" / "release-parts.json"


@dataclass(frozen=True)
class Part:
    """What came of one part.

    Attributes:
        earlier: Whether it passed in an earlier run on the same commit.
    """

    name: str
    exit_code: int
    seconds: float
    earlier: bool = False

    def line(self) -> str:
        """A line of the summary."""
        ended = "passed" if self.exit_code == 0 else f"FAILED with exit code {self.exit_code}"
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"  {self.name:<20} {minutes:>4} min {seconds:02} s  {ended}{' earlier on this commit' * self.earlier}"


class PassedParts:
    """Remembers which parts passed on a commit; nothing is remembered where files differ from the commit.

    Args:
        file: Where they are kept; those of another commit are forgotten.
        commit: Its id; None where files differ from it, or where there is none.
    """

    def __init__(self, file: Path, commit: str | None) -> None:
        self._file, self._commit = file, commit

    def all(self) -> dict[str, Part]:
        """Those of this commit by name."""
        if self._commit is None or not self._file.exists():
            return {}
        kept = json.loads(self._file.read_text())
        return {part["name"]: Part(**part) for part in kept["parts"]} if kept["commit"] == self._commit else {}

    def add(self, part: Part) -> None:
        """Remember one."""
        if self._commit is None:
            return
        parts = {**self.all(), part.name: part}
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps({"commit": self._commit, "parts": [asdict(each) for each in parts.values()]}))


def clean_commit() -> str | None:
    """The id of the commit that the files are those of; None if they differ from it, or git does not know."""
    asked = [_asked("git", "status", "--porcelain"), _asked("git", "rev-parse", "HEAD")]
    return asked[1] if asked[0] == "" else None


def _asked(*command: str) -> str | None:
    try:
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def run_parts(
    commands: Mapping[str, Sequence[str]],
    passed: PassedParts,
    commit_now: Callable[[], str | None] = clean_commit,
    beside: str = "",
) -> int:
    """Run each command, and print one line for each of them; the exit code is 0 if all have passed.

    Args:
        commands: By the name of the part.
        passed: Those that need no other run.
        commit_now: The commit that the files are those of, for a part counts for a commit only if they stayed so.
        beside: The part that runs beside the others, if any; what it prints comes after all that they print.
    """
    earlier, before = passed.all(), commit_now()
    parts = {name: Part(name, 0, part.seconds, earlier=True) for name, part in earlier.items() if name in commands}

    def ended(part: Part) -> None:
        parts[part.name] = part
        if part.exit_code == 0 and commit_now() == before:
            passed.add(part)

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
    parser.add_argument("--again", action="store_true", help="run also what passed on this commit")
    parser.add_argument("--beside", metavar="TARGET", default="", help="run this one beside the others")
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    options = parser.parse_args()
    if options.again:
        PASSED.unlink(missing_ok=True)
    targets = {target: ["make", "--no-print-directory", target] for target in options.targets}
    return run_parts(targets, PassedParts(PASSED, clean_commit()), beside=options.beside)


if __name__ == "__main__":
    sys.exit(main())

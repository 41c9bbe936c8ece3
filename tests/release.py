"""Runs targets of the Makefile one after the other, all of them whatever comes of each, and sums up at the end.

python -m tests.release TARGET ... is what `make test-all` does with all that a release has to pass.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """What came of one part."""

    name: str
    exit_code: int
    seconds: float

    def line(self) -> str:
        """A line of the summary."""
        ended = "passed" if self.exit_code == 0 else f"FAILED with exit code {self.exit_code}"
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"  {self.name:<12} {minutes:>4} min {seconds:02} s  {ended}"


def run_parts(commands: Mapping[str, Sequence[str]]) -> int:
    """Run each command, and print one line for each of them; the exit code is 0 if all have passed.

    Args:
        commands: By the name of the part.
    """
    parts = []
    for name, command in commands.items():
        print(f"== {name}", flush=True)  # noqa: T201 - a program
        started = time.monotonic()
        code = subprocess.run(command, check=False).returncode
        parts.append(Part(name, code, time.monotonic() - started))
    failed = [part.name for part in parts if part.exit_code]
    closing = f"FAILED: {', '.join(failed)}" if failed else f"all {len(parts)} parts passed"
    print("\n".join(["== summary", *(part.line() for part in parts), closing]), flush=True)  # noqa: T201 - a program
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_parts({target: ["make", "--no-print-directory", target] for target in sys.argv[1:]}))

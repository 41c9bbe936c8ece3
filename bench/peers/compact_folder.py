"""This project without Spark: `compactor.compact` of the folder into an empty one, with the native engine."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.protocol import parser, run_passes
from compactor import compact


def convert(files: Sequence[Path], output: Path) -> int:
    """Compact the folder of the files once, and verify the counts.

    Returns:
        The rejected lines.
    """
    state = output.with_name(f"{output.name}-state")
    shutil.rmtree(state, ignore_errors=True)
    done = compact(files[0].parent, output, state=state, engine="native")
    if not done.complete:
        raise SystemExit(f"exit code {done.exit_code}: {'; '.join(done.problems)}"[:2000])
    return done.rejected_lines


def main() -> None:
    """Run as a contender."""
    arguments = parser().parse_args()
    arguments.input, arguments.output = arguments.input.resolve(), arguments.output.resolve()
    run_passes(arguments, convert)


if __name__ == "__main__":
    main()

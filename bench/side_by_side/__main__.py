"""The command: runs each tool on the same folder, prints the table, and writes it into the document."""

import os
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import pyarrow.parquet as pq

from bench.side_by_side.environment import ensure_environment, version
from bench.side_by_side.folder import DAYS, DIRTY, DirtyFolder
from bench.side_by_side.tools import Step, Tool, tools
from compactor import __version__
from tools.document_tables import with_tables

_ROOT = Path(__file__).resolve().parents[2]
_WORK = _ROOT / ".bench" / "side-by-side"
HEAD = (
    "| day | tool | step | exit | seconds | seconds of a core | good lines that are rows | of them twice "
    "| rows without data | lines of the truncated file | files it names |\n"
    f"{'|---' * 11}|"
)
_MODULE = "bench.side_by_side"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a step.

    Attributes:
        seconds: By the clock.
        core_seconds: Of work, by all processes.
        printed: On both streams.
        good: Lines that are rows, of those that should be.
        wanted: How many should be.
        doubled: Of these lines, those that are more than one row.
        empty: Rows without an id, which are no line.
        torn: Rows of a file that cannot be read to its end.
    """

    code: int
    seconds: float
    core_seconds: float
    printed: str
    good: int
    wanted: int
    doubled: int
    empty: int
    torn: int

    @property
    def named(self) -> list[str]:
        """The files that needed a word and got one."""
        return [name for name in DIRTY if name in self.printed]


@click.command()
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files here.")
@click.option(
    "--document", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Write the table into this page."
)
def main(*, work: Path, document: Path | None) -> None:
    """Compare the compactor, DuckDB and dlt on a dirty folder that changes."""
    work = work.resolve()
    environment = work / "environment"
    ensure_environment(environment)
    lines = [line for tool in tools(environment) for line in run_tool(tool, work)]
    table = "\n".join([HEAD, *sorted(lines, key=lambda line: line.split("|")[1])])
    table += f"\n\nMeasured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores."
    print(table)
    if document is not None:
        document.write_text(with_tables(document.read_text(), {"steps": table}, f"python -m {_MODULE}"))


def run_tool(tool: Tool, work: Path) -> list[str]:
    """The lines of the table that belong to a tool."""
    place = work / (tool.package or "compactor")
    folder = DirtyFolder(place)
    name = tool.name.format(version(tool.package) if tool.package else __version__)
    found = []
    for day, steps in zip(DAYS, tool.days, strict=True):
        folder.live(day)
        for tried in steps:
            outcome = run_step(tried, tool, place, folder.good)
            log = place / f"day-{day}-{steps.index(tried)}.log"
            log.write_text(outcome.printed)
            found.append(line_of(day, name, tried, outcome))
    return found


def run_step(tried: Step, tool: Tool, place: Path, good: set[int]) -> Outcome:
    """Run it, and count the rows that are there by then."""
    quiet = {"HOME": str(place), "RUNTIME__DLTHUB_TELEMETRY": "false", "NO_COLOR": "1", "PYTHONPATH": str(_ROOT)}
    started, used = time.monotonic(), _used()
    done = subprocess.run(
        tried.command, cwd=place, input=tried.stdin, text=True, capture_output=True, check=False, env=os.environ | quiet
    )
    seconds, core_seconds = time.monotonic() - started, _used() - used
    rows = Counter(
        None if each is None else int(each)
        for path in place.glob(tool.rows)
        for each in pq.read_table(path, columns=["id"]).column("id").to_pylist()
    )
    return Outcome(
        code=done.returncode,
        seconds=seconds,
        core_seconds=core_seconds,
        printed=done.stdout + done.stderr,
        good=len(good & rows.keys()),
        wanted=len(good),
        doubled=sum(rows[each] > 1 for each in good),
        empty=rows[None],
        torn=sum(number for each, number in rows.items() if each is not None and each not in good),
    )


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def line_of(day: int, name: str, tried: Step, outcome: Outcome) -> str:
    """A step as a line of the table."""
    cells = (
        str(day),
        name,
        tried.said,
        str(outcome.code),
        f"{outcome.seconds:.1f}",
        f"{outcome.core_seconds:.1f}",
        f"{outcome.good:,} of {outcome.wanted:,}",
        f"{outcome.doubled:,}",
        f"{outcome.empty:,}",
        f"{outcome.torn:,}",
        ", ".join(outcome.named) or "none",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())

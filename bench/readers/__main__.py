"""The command: python -m bench.readers [--help]."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
from pyspark.sql import SparkSession

from bench.inputs import ensure_input
from bench.readers.files import WRITERS, ensure_files
from bench.readers.queries import Question, questions, readers
from bench.table import aligned

_WORK = Path(__file__).resolve().parents[2] / ".bench" / "readers"
_INPUT_BYTES = 400 * 1024**2  # its rows are one file of 100 MB
_SEED = 7
_IN_THIS_PROCESS = ("duckdb", "polars", "pyarrow")


@click.command()
@click.option("--times", type=click.IntRange(min=1), default=7, show_default=True, help="Ask each question so often.")
def main(*, times: int) -> None:
    """Ask ten questions of the compactor's file and of files of other writers with the same rows.

    Prints the least time of each in milliseconds and, where a reader is in this process, the megabytes that it read.
    """
    _WORK.mkdir(parents=True, exist_ok=True)
    made = ensure_input(_WORK, _INPUT_BYTES, _SEED)
    builder = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        files = ensure_files(_WORK, made, spark)
        sizes = ", ".join(f"{name} {file.stat().st_size / 1e6:.1f} MB" for name, file in files.items())
        rows: list[tuple[str, ...]] = [("reader", "question", *WRITERS)]
        asked = questions(files["compactor"])
        for reader, ask in readers(spark).items():
            for question in asked:
                found = [_measured(ask, question, file, times, reader in _IN_THIS_PROCESS) for file in files.values()]
                rows.append((reader, question.name, *found))
    finally:
        spark.stop()
    sys.stdout.write(f"{made.rows:,} rows: {sizes}\n\n{aligned(rows)}\n")


def _measured(
    ask: Callable[[Question, Path], object], question: Question, file: Path, times: int, is_here: bool
) -> str:
    """The least time, and the bytes read by one call if that is known; `fails` if the reader does not read the file."""
    try:
        ask(question, file)
        before, seconds = _read_bytes(), list[float]()
        for _ in range(times):
            began = time.perf_counter()
            ask(question, file)
            seconds.append(time.perf_counter() - began)
    except Exception:  # noqa: BLE001 - errors of readers have any type
        return "fails"
    read = f"  {(_read_bytes() - before) / times / 1e6:5.1f} MB" if is_here else ""
    return f"{min(seconds) * 1000:5.0f} ms{read}"


def _read_bytes() -> int:
    """What this process has read so far."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


if __name__ == "__main__":
    main()

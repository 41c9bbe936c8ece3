"""The command: makes each set, accounts for what each contender makes of it, times them, and writes the scoreboard."""

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.__main__ import leave, versions
from bench.contenders import CLICKHOUSE, SCOREBOARD, Contender, choose
from bench.inputs import check_room, chosen, parse_size
from bench.scoreboard.chart import COLOURS, bars, chart
from bench.scoreboard.figures import Figure
from bench.scoreboard.overview import overview
from bench.scoreboard.report import Scoreboard, SetFacts
from bench.scoreboard.rounds import Rounds
from bench.scoreboard.sets import SETS, DataSet
from bench.scoreboard.truth import SAMPLED_LINES, read_truth
from bench.side_by_side.environment import bin_folder, ensure_environment, version
from compactor import __version__
from tools.document_tables import with_tables

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_ROOT = Path(__file__).resolve().parents[2]
_WORK = _ROOT / ".bench" / "scoreboard"
_PAGE = _ROOT / "bench" / "side-by-side.md"
_MODULE = "bench.scoreboard"
_DISK_PER_INPUT_BYTE = 4  # the set, the Parquet of one contender, and what Spark caches or spills


@click.command()
@click.option("--size", default="300mb", show_default=True, help="Make this much input of each set.")
@click.option("--runs", type=click.IntRange(min=1), default=3, show_default=True, help="Time each contender so often.")
@click.option("--only", help="Take only these contenders, separated by commas.")
@click.option("--sets", "only_sets", help="Take only these sets, separated by commas.")
@click.option("--seed", default=7, show_default=True, help="Make the sets from this seed.")
@click.option("--limit", default=600.0, show_default=True, help="End a run after so many seconds.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files here.")
@click.option("--pages", is_flag=True, help="Write the tables into bench/side-by-side.md, and the chart of the README.")
def main(
    *,
    size: str,
    runs: int,
    only: str | None,
    only_sets: str | None,
    seed: int,
    limit: float,
    work: Path,
    pages: bool,
) -> None:
    """Compare ways to Parquet on each kind of input, and account for every line."""
    signal.signal(signal.SIGTERM, leave)
    if pages and (only or only_sets):
        raise click.UsageError("--pages: expected neither --only nor --sets with it; the pages have the whole table")
    try:
        if pages:
            page_with("", "")  # a mark that is missing would else be found out after hours
        asked = choose(only, SCOREBOARD)
        names = chosen(only_sets, [each.name for each in SETS])
        total_bytes = parse_size(size)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc
    work = work.resolve()
    contenders = with_pythons(asked, work / "environment")
    facts: list[SetFacts] = []
    figures: list[Figure] = []
    for data_set in (each for each in SETS if each.name in names):
        try:
            check_room(work, total_bytes * _DISK_PER_INPUT_BYTE)
            fact, found = run_set(data_set, contenders, work, total_bytes, seed, runs=runs, limit=limit)
        except OSError as exc:
            raise click.ClickException(str(exc)) from exc
        facts.append(fact)
        figures += found
        board = Scoreboard(
            method(runs, seed),
            _versions(contenders),
            {each.name: each.said for each in contenders},
            facts,
            figures,
        )
        (work / "scoreboard.json").write_text(board.json())
        (work / "scoreboard.md").write_text(board.markdown())
    click.echo(board.markdown())
    if pages:
        _PAGE.write_text(page_with(board.markdown().rstrip(), overview(figures)))
        for theme in COLOURS:
            (_ROOT / "docs" / f"cpu-{theme}.svg").write_text(chart(bars(figures), theme))


def page_with(table: str, overview_table: str) -> str:
    """The page with new tables; a `ValueError` if a mark is missing."""
    return with_tables(_PAGE.read_text(), {"scoreboard": table, "overview": overview_table}, f"python -m {_MODULE}")


def run_set(
    data_set: DataSet,
    contenders: Sequence[Contender],
    work: Path,
    total_bytes: int,
    seed: int,
    *,
    runs: int,
    limit: float,
) -> tuple[SetFacts, list[Figure]]:
    """Make a set, run the contenders on it, and delete it."""
    place = work / "set"
    shutil.rmtree(place, ignore_errors=True)
    try:
        given = data_set.write(place, total_bytes, seed)
        truth = read_truth(data_set, given)
        rounds = Rounds(data_set, given, truth, work, limit, lambda said: click.echo(said, err=True))
        return SetFacts.of(data_set.name, given, truth), rounds.figures(contenders, runs)
    finally:
        for folder in (place, work / "output"):
            shutil.rmtree(folder, ignore_errors=True)


def with_pythons(contenders: Sequence[Contender], environment: Path) -> list[Contender]:
    """The contenders, those of another environment with its Python, or without if it cannot be made."""
    others = [each.name for each in CLICKHOUSE]
    if not any(each.name in others for each in contenders):
        return list(contenders)
    try:
        ensure_environment(environment, REQUIREMENTS, "chdb and what it needs")
    except subprocess.CalledProcessError as exc:
        click.echo(f"chdb cannot be installed: {exc}", err=True)
        return list(contenders)
    python = bin_folder(environment) / "python"
    return [replace(each, python=python) if each.name in others else each for each in contenders]


def _versions(contenders: Sequence[Contender]) -> list[str]:
    """The versions of all that took part."""
    others = [f"chdb {version('chdb', REQUIREMENTS)}"] if any(each.python for each in contenders) else []
    return [f"compactor {__version__}", *versions(), *others]


def method(runs: int, seed: int) -> str:
    """How the figures were measured, in one paragraph."""
    return (
        "Each contender first converts a set once, and what it wrote is read back: every row by its key, and the "
        f"values of about {SAMPLED_LINES:,} lines at equal distances against the raw text. On a set without bad "
        "lines it is timed only if no line is lost, doubled or changed. Then it is timed in "
        f"{runs} runs, each in a process of its own, all contenders in turn and back again, with two passes of which "
        "the second counts; figures are medians. MB and GB are 10^6 and 10^9 bytes of input before compression, from "
        "the page cache; CPU time is that of all processes; memory is the peak of all processes together, sampled 5 "
        "times a second, or the recorded peak of the first process, if that is more. "
        f"Seed {seed}. Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.machine()}."
    )


if __name__ == "__main__":
    main()

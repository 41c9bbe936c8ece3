"""The command: python -m bench.upkeep [--help]."""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from bench.table import aligned
from bench.upkeep.carried import FILES, carried
from bench.upkeep.commits import Figures, Upkeep, measured
from compactor.wiring.table_sink import MANIFESTS_PER_COMMIT

_WORK = Path(__file__).resolve().parents[2] / ".bench" / "upkeep"
_AT = (10, 100, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000)
HEADINGS = (
    "commits", "ms", "CPU ms", "mean", "most", "metadata KB", "snapshots", "manifests", "files", "folder MB", "upkeep s"
)  # fmt: skip


@click.command()
@click.option("--commits", type=click.IntRange(min=10), default=10_000, show_default=True, help="Commit so many files.")
@click.option("--every", type=click.IntRange(min=1), default=100, show_default=True, help="Commits between upkeep.")
@click.option("--keep", type=click.IntRange(min=1), default=100, show_default=True, help="Snapshots that stay.")
@click.option("--without", is_flag=True, help="Do no upkeep.")
@click.option("--carried", "manifests", type=click.IntRange(min=1), help="Instead, commit so many manifests at once.")
def main(*, commits: int, every: int, keep: int, without: bool, manifests: int | None) -> None:
    """Measure commits to a table in SQLite on this disk, and the size of its metadata."""
    if manifests is not None:
        _carry(manifests)
        return
    at = frozenset({*(each for each in _AT if each <= commits), commits})
    found = list[Figures]()
    _WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_WORK) as folder:
        for figures in measured(Path(folder), commits, at, None if without else Upkeep(every, keep)):
            found.append(figures)
            sys.stderr.write(f"{figures.commits} commits: {figures.cpu_seconds * 1000:.0f} ms of CPU time each\n")
    name = "without" if without else "with"
    (_WORK / f"{name}.json").write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    sys.stdout.write(aligned([HEADINGS, *map(cells, found)]) + "\n")


def _carry(manifests: int) -> None:
    _WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_WORK) as folder:
        found = carried(Path(folder), manifests, MANIFESTS_PER_COMMIT)
    sys.stdout.write(
        f"{found.manifests:,} manifests of {FILES} files in {found.commits} commits: {found.seconds:.1f} s, "
        f"{found.cpu_seconds:.1f} s of CPU time: {found.an_hour:,.0f} an hour\n"
    )


def cells(row: Figures) -> tuple[str, ...]:
    """A row of the table that is printed."""
    return (
        f"{row.commits:,}",
        f"{row.seconds * 1000:.0f}",
        f"{row.cpu_seconds * 1000:.0f}",
        f"{row.mean_cpu_seconds * 1000:.0f}",
        f"{row.most_cpu_seconds * 1000:.0f}",
        f"{row.metadata_bytes / 1000:,.0f}",
        f"{row.snapshots:,}",
        f"{row.manifests:,}",
        f"{row.files:,}",
        f"{row.folder_bytes / 1e6:,.1f}",
        f"{row.upkeep_seconds:.1f}",
    )


if __name__ == "__main__":
    main()

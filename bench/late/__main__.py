"""The command: python -m bench.late [--help]."""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click

from bench.late.events import Lateness
from bench.late.home import Home
from bench.late.queries import Asked, asked, queries
from bench.table import aligned
from compactor.core.documents.changes import Commit

_WORK = Path(__file__).resolve().parents[2] / ".bench" / "late"
_FIRST = date(2025, 11, 1)
EXPECTED_HIT_RATE = 0.95


@click.command()
@click.option("--days", type=click.IntRange(min=1), default=2, show_default=True, help="Days on which events arrive.")
@click.option("--manifests", type=click.IntRange(min=1), default=24, show_default=True, help="Manifests a day.")
@click.option("--rows", type=click.IntRange(min=100), default=160_000, show_default=True, help="Rows of a manifest.")
@click.option(
    "--target", type=click.IntRange(min=1), default=1, show_default=True, help="Make output files of so many MiB."
)
@click.option(
    "--partition-by",
    multiple=True,
    default=("event_day = day(ts)",),
    show_default=True,
    help="As in the settings; may be repeated.",
)
def main(*, days: int, manifests: int, rows: int, target: int, partition_by: Sequence[str]) -> None:
    """Compact days of late events into a table, merge its files, and compare both. Fails if too few have their size.

    Sizes are scaled down alike: with files of 1 MiB, a manifest of 160,000 rows has about as many files as one of 1 GB
    with files of 128 MiB.
    """
    _WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_WORK) as folder:
        home = Home(Path(folder), target * 2**20, partition_by)
        home.begin()
        found = _measured(home, days, manifests, rows)
    (_WORK / "late.json").write_text(json.dumps(found, indent=2) + "\n")
    sys.stdout.write(f"{_shown(found)}\n")
    sys.exit(found["after"]["hit_rate"] < EXPECTED_HIT_RATE or not found["answers_are_equal"])


def _measured(home: Home, days: int, manifests: int, rows: int) -> dict[str, Any]:
    peak, seconds = 0, 0.0
    for number in range(days):
        day = _FIRST + timedelta(days=number)
        for each in range(manifests):
            home.deliver(day, each, rows, Lateness())
        ended = home.call("run", "--once")
        peak, seconds = max(peak, ended.peak_bytes), seconds + ended.seconds
        shutil.rmtree(home.folder / "raw")
        sys.stderr.write(f"{day}: {manifests} manifests in {ended.seconds:.0f} s\n")
    last = _FIRST + timedelta(days=days - 1)
    before = _asked(home, last)
    merged = home.call("table", "merge", "--json")
    after = _asked(home, last)
    verified = home.call("verify", "--json")
    report = merged.document
    return {
        "run": {"seconds": seconds, "peak_bytes": peak, "partitions": _partitions(home)},
        "merge": {"seconds": merged.seconds, "peak_bytes": merged.peak_bytes, "read_bytes": report["merged_bytes"]},
        "before": report["before"],
        "after": report["after"],
        "queries": [(asdict(one), asdict(other)) for one, other in zip(before, after, strict=True)],
        "answers_are_equal": [each.answer for each in before] == [each.answer for each in after],
        "verified": not verified.document["discrepancies"],
    }


def _asked(home: Home, last: date) -> list[Asked]:
    table = home.table()
    return [asked(table, query) for query in queries(last)]


def _partitions(home: Home) -> float:
    """How many partitions a manifest has, on average."""
    outcomes = [Commit.model_validate_json(path.read_bytes()) for path in (home.folder / "state").rglob("outcome.json")]
    return sum(len({tuple(file.partition) for file in each.outputs}) for each in outcomes) / max(len(outcomes), 1)


def _shown(found: dict[str, Any]) -> str:
    before, after = found["before"], found["after"]
    mib: Callable[[float], str] = lambda size: f"{size / 2**20:,.0f} MiB"  # noqa: E731 - so short
    figures = [
        ("", "before", "after"),
        ("hit rate by bytes", f"{before['hit_rate']:.1%}", f"{after['hit_rate']:.1%}"),
        ("of it alone in a partition", *(f"{each['lone_bytes'] / each['size_bytes']:.1%}" for each in (before, after))),
        ("files", f"{before['files']:,}", f"{after['files']:,}"),
        ("bytes", mib(before["size_bytes"]), mib(after["size_bytes"])),
        ("peak memory: run, merge", mib(found["run"]["peak_bytes"]), mib(found["merge"]["peak_bytes"])),
        ("seconds: run, merge", f"{found['run']['seconds']:.0f}", f"{found['merge']['seconds']:.0f}"),
        ("partitions a manifest", f"{found['run']['partitions']:.1f}", ""),
        ("open writers, by design", "1", "1"),
    ]
    rows = [("query", "files", "ms", "files after", "ms after")]
    rows += [
        (
            one["name"],
            f"{one['files']:,}",
            f"{one['seconds'] * 1000:.0f}",
            f"{two['files']:,}",
            f"{two['seconds'] * 1000:.0f}",
        )
        for one, two in found["queries"]
    ]
    equal = "equal answers" if found["answers_are_equal"] else "OTHER ANSWERS"
    verified = "verified" if found["verified"] else "NOT VERIFIED"
    return f"{aligned(figures)}\n\n{aligned(rows)}\n\n{equal}, {verified}"


if __name__ == "__main__":
    main()

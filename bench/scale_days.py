"""The command that measures what closed dates cost: `python -m bench.scale days`.

Each state has closed dates of 2,500 manifests with 8 files, and behind them one open date with records. Commands read
no records of closed dates, so only their summaries are written: 400 dates are a million manifests.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import click

from bench.scale_days_probe import COMMANDS
from bench.scale_ledger import FIRST_DAY, write_finished
from bench.scale_probe import settings_at
from bench.scale_table import FLAT
from compactor.core.closed_dates import ClosedDate, ClosingBegun, ManifestSums, Member
from compactor.core.layout import digest
from compactor.core.manifest_key import ManifestKey
from compactor.ledger.closed_dates import ClosedDates, Versions
from compactor.wiring.app import App

MANIFESTS = 2_500
_FILES = 8
_OPEN_MANIFESTS = 200
_WORK = Path(__file__).resolve().parent.parent / ".bench"


@click.command("days")
@click.option("--days", "counts", default="1,30,400", show_default=True, help="Numbers of closed dates to compare.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Processes for each figure.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default=_WORK, help="Keep all files here.")
def days(*, counts: str, rounds: int, work: Path) -> None:
    """Measure each command with few and with many closed dates: calls of the store, seconds, memory."""
    numbers = sorted(map(int, counts.split(",")))
    roots = {number: work.resolve() / f"days-{number}" for number in numbers}
    try:
        for number, root in roots.items():
            _make(root, number)
        found = {
            command: {number: _measured(root, command, rounds) for number, root in roots.items()}
            for command in COMMANDS
        }
    finally:
        for root in roots.values():
            shutil.rmtree(root, ignore_errors=True)
    for line in _table(found):
        click.echo(line)
    click.echo(
        f"Closed dates of {MANIFESTS:,} manifests each, and an open one of {_OPEN_MANIFESTS}. Medians of {rounds} "
        f"processes each. Local disk, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}."
    )


def _make(root: Path, number: int) -> None:
    shutil.rmtree(root, ignore_errors=True)
    app = App(settings_at(root))
    (root / "raw").mkdir(parents=True)
    write_finished(app.layout, _OPEN_MANIFESTS, str(root / "raw"), days=1)
    dates, now = ClosedDates(app.store, app.layout), datetime.now(UTC)
    for each in range(_OPEN_MANIFESTS):
        app.ledger.mark_unsummarised(ManifestKey(FIRST_DAY.isoformat(), f"{FIRST_DAY}-{each:08d}"))
    for place in range(1, number + 1):
        closed_at = now - timedelta(days=number - place + 5)
        date = (FIRST_DAY - timedelta(days=number - place + 1)).isoformat()
        members = [Member(f"{date}-{each:08d}", 1, 0) for each in range(MANIFESTS)]
        prints = sorted(int(digest(f"{date}{each}".encode())[:16], 16) for each in range(MANIFESTS * _FILES))
        versions = Versions(array("Q", prints), array("I", [each // _FILES for each in range(len(prints))]))
        summary = ClosedDate(
            date=date,
            number=1,
            run_id="earlier",
            closed_at=closed_at,
            begins_at=closed_at - timedelta(days=1),
            until=closed_at,
            sums=ManifestSums(manifests=MANIFESTS, files=MANIFESTS * _FILES),
            members=0,
            member_bytes=0,
            versions=0,
        )
        dates.write(place, summary, members, versions)
    dates.keep_totals(dates.totals())
    dates.begin(ClosingBegun(run_id="earlier", begun_at=now))


def _measured(root: Path, command: str, rounds: int) -> dict[str, float]:
    argv = [sys.executable, "-m", "bench.scale_days_probe", str(root), command]
    runs = [subprocess.run(argv, check=True, capture_output=True, text=True) for _ in range(rounds)]
    found = [json.loads(run.stdout.splitlines()[-1]) for run in runs]
    return {key: median(each[key] for each in found) for key in found[0]}


def _table(found: Mapping[str, Mapping[int, Mapping[str, float]]]) -> Sequence[str]:
    """A line for each command, with its figures for each number of dates, and what is not flat."""
    lines = []
    for command, states in found.items():
        texts = [
            f"{number} dates: {each['calls']:,.0f} calls, {each['seconds']:.2f} s, {each['bytes'] / 2**20:,.0f} MiB"
            for number, each in states.items()
        ]
        few, many = states[min(states)], states[max(states)]
        steep = [key for key in few if many[key] > FLAT * few[key]]
        lines.append(f"{command:8} {'; '.join(texts)}{'  NOT FLAT: ' + ', '.join(steep) if steep else ''}")
    return lines

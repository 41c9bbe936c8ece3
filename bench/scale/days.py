"""The command that measures what closed dates cost: `python -m bench.scale days`.

Each state has closed dates of 2,500 manifests, and behind them one open date with records: 400 closed dates are a
million manifests. Their summaries are on the disk. Their records, archive and output are made up as a command asks for
them, so that a command which lists or reads them is seen.
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
from random import Random
from statistics import median

import click

from bench.scale import options
from bench.scale.history import LETTER_EVERY, manifest_id
from bench.scale.journal import index_on_s3
from bench.scale.ledger import FIRST_DAY, write_finished
from bench.scale.probe import settings_at
from bench.scale.table import FLAT
from compactor.adapters.local.sqlite.seen_files import LocalSummarisedFiles, seen_rows
from compactor.core.documents.closed_dates import ClosedDate, ClosingBegun, Member
from compactor.core.documents.counts import Counts
from compactor.ledger.history.closed_dates import ClosedDates, Versions
from compactor.ops.closing.draft import VersionIndex
from compactor.sources.file_search import Naming
from compactor.sources.folders.history import known_at
from compactor.wiring.app import App

MANIFESTS = 2_500
_FILES = 8
_OPEN_MANIFESTS = 200
_LEAST = {"seconds": 0.02}  # less more is the reading of the totals, 150 bytes a date, or chance


@click.command("days")
@click.option("--days", "counts", default="1,30,400", show_default=True, help="Numbers of closed dates to compare.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Processes for each figure.")
@click.option("--only", help="Measure only these commands, separated by semicolons.")
@click.option("--manifests", type=click.IntRange(min=1), default=MANIFESTS, show_default=True, help="Of each date.")
@options.WORK
def days(*, counts: str, rounds: int, only: str | None, manifests: int, work: Path) -> None:
    """Measure each command with few and with many closed dates: calls of the store, CPU seconds, memory."""
    from bench.scale.days_probe import ALL  # noqa: PLC0415 - it imports this module

    numbers = sorted(map(int, counts.split(",")))
    roots = {number: work.resolve() / f"days-{number}" for number in numbers}
    chosen = list(ALL) if only is None else [each.strip() for each in only.split(";")]
    if unknown := [each for each in chosen if each not in ALL]:
        raise click.UsageError(f"--only: nothing called {unknown[0]!r}; expected some of {'; '.join(ALL)}")
    try:
        for number, root in roots.items():
            make_state(root, number, manifests=manifests)
        for command in chosen:
            found = {number: _measured(root, number, command, rounds, manifests) for number, root in roots.items()}
            for line in table_lines(command, found):
                click.echo(line)
    finally:
        for root in roots.values():
            shutil.rmtree(root, ignore_errors=True)
    click.echo(
        f"Closed dates of {manifests:,} manifests each, and an open one of {_OPEN_MANIFESTS}. A list call gives 1,000 "
        f"objects. Up to {_LEAST['seconds'] * 1000:.0f} ms more count as flat. {rounds} processes for each figure: "
        f"medians of calls and memory, and the least time, at nice {os.nice(0)}. Local disk, {os.cpu_count()} cores, "
        f"{platform.machine()}, Python {platform.python_version()}."
    )


def closed_days(number: int) -> list[str]:
    """The dates that are closed, in order."""
    return [(FIRST_DAY - timedelta(days=number - place + 1)).isoformat() for place in range(1, number + 1)]


def later_days() -> list[str]:
    """Dates behind them that may be closed next."""
    return [(FIRST_DAY + timedelta(days=place)).isoformat() for place in range(1, 21)]


def make_state(root: Path, number: int, *, manifests: int = MANIFESTS, open_manifests: int = _OPEN_MANIFESTS) -> None:
    """Write a state with this many closed dates, and an open one."""
    shutil.rmtree(root, ignore_errors=True)
    app = App(settings_at(root))
    (root / "raw").mkdir(parents=True)
    write_finished(app.layout, open_manifests, str(root / "raw"), days=1)
    for key in app.ledger.manifests():
        app.ledger.mark_unsummarised(app.ledger.outcome(key))
    dates, now = ClosedDates(app.store, app.layout), datetime.now(UTC)
    for place, date in enumerate(closed_days(number), start=1):
        _close(dates, place, date, now - timedelta(days=number - place + 5), manifests)
    dates.keep_totals(dates.totals())
    dates.begin(ClosingBegun(run_id="earlier", begun_at=now))
    _remember(app, dates, closed_days(number), manifests)
    index = VersionIndex(dates)
    index.read_to(number)
    index_on_s3(root, closed_days(number), manifests)


def _close(dates: ClosedDates, place: int, date: str, closed_at: datetime, manifests: int) -> None:
    members = [Member(manifest_id(date, each), 1, 0, 0) for each in range(manifests)]
    random = Random(date)
    prints = sorted(random.getrandbits(64) for _ in range(manifests * _FILES))
    versions = Versions(array("Q", prints), array("I", [each // _FILES for each in range(len(prints))]))
    letters = -(-manifests // LETTER_EVERY)
    summary = ClosedDate(
        date=date,
        number=1,
        run_id="earlier",
        closed_at=closed_at,
        begins_at=closed_at - timedelta(days=1),
        until=closed_at,
        sums=Counts(manifests=manifests - letters, dead_letters=letters),
        members=0,
        member_bytes=0,
        versions=0,
    )
    dates.write(place, summary, members, versions)


def _remember(app: App, dates: ClosedDates, closed: Sequence[str], manifests: int) -> None:
    """Let `compact` know of one file of each manifest, which is gone and was passed over."""
    memory = LocalSummarisedFiles(app.layout.seen_file)
    for place, date in enumerate(closed, start=1):
        names = [manifest_id(date, each) for each in range(manifests)]
        files = [Naming(each, f"/gone/{each}.ndjson", "1-9", "compacted", date, 9, "d") for each in names]
        with seen_rows(memory.path) as rows:
            rows.executemany("INSERT INTO passed VALUES (?, ?)", [(each.uri, each.etag) for each in files])
        memory.add(files)
        memory.reach(known_at(dates, place))


def _measured(root: Path, number: int, command: str, rounds: int, manifests: int) -> dict[str, float]:
    argv = [sys.executable, "-m", "bench.scale.days_probe", str(root), str(number), command, str(manifests)]
    runs = [subprocess.run(argv, check=True, capture_output=True, text=True) for _ in range(rounds)]
    found = [json.loads(run.stdout.splitlines()[-1]) for run in runs]
    # Other work on the machine only adds to the time.
    return {key: (min if key == "seconds" else median)(each[key] for each in found) for key in found[0]}


def table_lines(command: str, states: Mapping[int, Mapping[str, float]]) -> list[str]:
    """A line for each number of dates: figures, their ratios to the fewest dates, and what is not flat."""
    few, lines = states[min(states)], []
    for number, each in states.items():
        ratios = {key: each[key] / few[key] for key in few}
        texts = [f"{each['calls']:,.0f} calls", f"{each['seconds']:.2f} CPU s", f"{each['bytes'] / 2**20:,.0f} MiB"]
        said = ", ".join(f"{text} ({ratio:.2f}x)" for text, ratio in zip(texts, ratios.values(), strict=True))
        steep = [key for key, ratio in ratios.items() if ratio > FLAT and each[key] - few[key] > _LEAST.get(key, 0)]
        lines.append(f"{command}: {number} dates: {said}{'  NOT FLAT: ' + ', '.join(steep) if steep else ''}")
    return lines

"""One command of the benchmark of closed dates, in a process of its own.

python -m bench.scale.days_probe ROOT DAYS COMMAND MANIFESTS

It prints its calls of the store, its seconds on the processor and the peak memory of the process, as one JSON object.
"""

import json
import resource
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from bench.scale.days import closed_days, later_days
from bench.scale.history import HistoryStore
from bench.scale.journal import store_on_s3
from bench.scale.ledger import FIRST_DAY
from bench.scale.probe import plain_engine, settings_at
from bench.scale.s3 import settings_on_s3
from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import is_s3
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.rejects import RejectsSearch
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.settings.settings import Settings
from compactor.wiring import finding, operating, planning, streaming
from compactor.wiring.app import App

_LINES = b'{"id": "1", "amount": 1.10}\n{"id": "2"}\n'


def _report(app: App) -> object:
    now = app.clock.now()
    return read_figures(app.state, app.registry, Period(now - timedelta(hours=1), now), target_file_bytes=1 << 27)


def _start(app: App) -> object:
    source = ListedManifests(app.store, app.layout.manifests_folder)
    report = streaming.service_on(app, plain_engine(app), source).run(once=True)
    if report.failures or report.dead_lettered:
        raise RuntimeError(f"the job has left something: {report}")
    return report


def _close_a_date(app: App) -> None:
    """Close the first date behind those that are closed, whose records are made up as well."""
    dates = ClosedDates(app.store, app.layout)
    closed = dates.totals().dates
    dates.mark_date(next(date for date in later_days() if date not in closed), app.run_id)
    report = operating.closer(app).close()
    if not report.summarised:
        raise RuntimeError(f"nothing was closed: {report}")


def _compact(app: App) -> None:
    """Plan, work and verify, as `compactor compact` does."""
    [raw] = app.settings.input.allowed_prefixes
    # Earlier calls left it there.
    app.seen_file = "" if is_s3(raw) else str(Path(raw).parent / "state" / "seen.sqlite")
    finding.folder_planner(app, [SourcePlace(raw)], planner=planning.planner(app)).plan()
    _start(app)
    operating.verifier(app).verify_all()


def _compact_new(app: App) -> None:
    [raw] = app.settings.input.allowed_prefixes
    app.store.put(f"{raw}/{FIRST_DAY}-{uuid.uuid4().hex}.ndjson", _LINES)
    _compact(app)


COMMANDS: dict[str, Callable[[App], object]] = {
    "verify": lambda app: operating.verifier(app).verify_all(),
    "status": lambda app: operating.status_reader(app).read(),
    "report": _report,
    "redrive manifests": lambda app: find_redrivable(app.state, Scope("manifests")),
    "redrive files": lambda app: find_redrivable(app.state, Scope("files")),
    "redrive rejects": lambda app: find_redrivable(app.state, Scope("rejects")),
    "rejects": lambda app: list(RejectsSearch(app.state).manifests()),
    "close": lambda app: operating.closer(app).close(),
    "start": _start,
    "compact, nothing new": _compact,
    "compact, one new file": _compact_new,
}
ON_S3: dict[str, Callable[[App], object]] = {
    "compact on S3, nothing new": _compact,
    "compact on S3, one new file": _compact_new,
}

TO_S3: dict[str, Callable[[App], object]] = {
    "compact from a disk to S3, nothing new": _compact,
    "compact from a disk to S3, one new file": _compact_new,
}

CLOSING: dict[str, Callable[[App], object]] = {"close, one date": _close_a_date}
"""What adds a date to the history: measured last."""

ALL = {**COMMANDS, **ON_S3, **TO_S3, **CLOSING}


def settings_of(name: str, root: Path) -> Settings:
    """The settings with which a command runs on the state below a folder."""
    if name in TO_S3:
        return settings_on_s3(f"{root}/raw")
    return settings_on_s3() if name in ON_S3 else settings_at(root)


def dates_of(name: str, days: int) -> list[str]:
    """The dates whose records are made up for a command, where so many are closed."""
    return [*closed_days(days), *(later_days() if name in CLOSING else ())]


def measured(
    root: Path,
    dates: Sequence[str],
    command: Callable[[App], object],
    *,
    manifests: int,
    page: int,
    settings: Settings | None = None,
) -> HistoryStore:
    """Run one command, on a local state or with these settings; returns the store, which has counted its calls."""
    settings = settings or settings_at(root)
    layout = settings.layout()
    store = (
        store_on_s3(root, dates, manifests, page=page)
        if is_s3(layout.state)
        else HistoryStore(App(settings).store, layout, dates, manifests, page=page)
    )
    command(App(settings, store=store))
    return store


def main() -> None:
    """Run one command, and print what it took."""
    began = time.process_time()  # other work on the machine does not count
    root, days, name, manifests = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    dates, settings = dates_of(name, days), settings_of(name, root)
    store = measured(root, dates, ALL[name], manifests=manifests, page=1_000, settings=settings)
    seconds = time.process_time() - began
    print(json.dumps({"calls": store.calls.total(), "seconds": seconds, "bytes": _peak_bytes()}))


def _peak_bytes() -> int:
    """The peak memory of this process. What `getrusage` says may be that of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    [peak] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1]) * 1024


if __name__ == "__main__":
    main()

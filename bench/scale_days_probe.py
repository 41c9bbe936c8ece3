"""One command of the benchmark of closed dates, in a process of its own.

python -m bench.scale_days_probe ROOT COMMAND

It prints its calls of the store, its seconds and the peak memory of the process, as one JSON object.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.scale_probe import settings_at
from compactor.adapters.listed_manifests import ListedManifests
from compactor.ops.redrive.scan import find_redrivable
from compactor.ops.redrive.selection import Scope
from compactor.ops.report.period import Period
from compactor.ops.report.reader import ReportReader
from compactor.wiring.app import App


def _report(app: App) -> object:
    now = app.clock.now()
    reader = ReportReader(app.state, app.registry)
    return reader.read(Period(now - timedelta(hours=1), now), target_file_bytes=1 << 27, with_samples=False)


def _start(app: App) -> object:
    from tests.support.fakes import PlainEngine  # noqa: PLC0415 - it comes with the repository only

    source = ListedManifests(app.store, app.layout.manifests_folder)
    return app.service_on(PlainEngine(app.store), source).run(once=True)


COMMANDS: dict[str, Callable[[App], object]] = {
    "verify": lambda app: app.verifier().verify_all(),
    "status": lambda app: app.status_reader.read(),
    "report": _report,
    "redrive": lambda app: find_redrivable(app.state, Scope("files")),
    "close": lambda app: app.closer().close(),
    "start": _start,
}


def main() -> None:
    """Run one command, and print what it took."""
    from tests.support.fakes import FaultyStore  # noqa: PLC0415 - it comes with the repository only

    settings = settings_at(Path(sys.argv[1]))
    store: Any = FaultyStore(App(settings).store)
    began = time.perf_counter()
    COMMANDS[sys.argv[2]](App(settings, store=store))
    seconds = time.perf_counter() - began
    calls = sum(number for method, number in store.calls.items() if method != "any")
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"calls": calls, "seconds": seconds, "bytes": peak_bytes}))


if __name__ == "__main__":
    main()

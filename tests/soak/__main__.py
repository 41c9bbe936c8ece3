"""Feeds, kills and disturbs the job for some minutes, then proves that nothing differs.

python -m tests.soak --minutes 20 --seed 7 [--engine spark|native|plain] [--place s3|local]

Trouble is what no attempt can compact: objects that S3 denies for good, and objects that kill the worker that reads
them. How many lines a second trouble leaves to honest manifests is measured in two phases of the same job, which is
neither killed nor short of its store in either: one without trouble, and one beside it.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from compactor.adapters.local.sqlite.claims import SqliteClaims
from compactor.adapters.stores import StoreSpec
from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from tests.soak.comparison import compare
from tests.soak.course import Course, Runs
from tests.soak.feeder import Feeder
from tests.soak.job import LEASE_SECONDS, Job
from tests.soak.phases import phases
from tests.soak.place import Place, place, s3_is_at_hand
from tests.soak.report import Report
from tests.soak.throughput import throughputs
from tests.soak.verification import verification
from tests.support.extras import VERSITYGW

_PAUSE_SECONDS = {"spark": 1.0, "native": 1.0, "plain": 0.1}


def main(words: Sequence[str] | None = None) -> int:
    arguments = _arguments(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # all that was started ends on the way out
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    _say(
        f"seed {arguments.seed}; {arguments.minutes:g} minutes on {arguments.engine} and {arguments.place}; in {folder}"
    )
    with place(folder, on_s3=arguments.place == "s3") as where:
        os.environ.update(where.environment)
        report = _soak(arguments, Job(arguments.engine, folder, where), where)
    _say("\n".join(report.lines()))
    if report.is_exact:
        shutil.rmtree(folder)
    else:
        _say(f"NOT EXACT; what is left to look at is in {folder}")
    if not report.is_fast:
        _say("TOO SLOW beside trouble")
    return 0 if report.is_exact and report.is_fast else 1


def _arguments(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--engine", choices=["spark", "native", "plain"], default="spark")
    parser.add_argument("--place", choices=["s3", "local"], help="S3 if there is a server for it that is fast enough")
    arguments = parser.parse_args(words)
    if arguments.place is None:
        arguments.place = "s3" if s3_is_at_hand() else "local"
        if arguments.place == "local":
            _say(f"{VERSITYGW.reason}; so the soak runs on plain folders, with kills and without faults of S3")
    return arguments


def _soak(arguments: Namespace, job: Job, where: Place) -> Report:
    store = StoreSpec(where.region or None, where.direct_url or None).open()
    claims = str(job.folder / "claims.sqlite")

    def new_app(config: Path) -> App:
        settings = replace(load_settings(config, {}), claim_lease_seconds=LEASE_SECONDS)
        return App(settings, claims=SqliteClaims(claims))

    app = new_app(job.direct)
    feeder = Feeder(
        store,
        app,
        lambda: new_app(job.config),
        seed=arguments.seed,
        for_spark=job.engine == "spark",
        pause_seconds=_PAUSE_SECONDS[job.engine],
        with_killers=job.engine != "plain",
    )
    course = Course(arguments.seed, job, where, feeder, Runs(store, app.layout))
    began = time.monotonic()
    course.run(phases(job.engine, on_s3=where.proxy is not None), arguments.minutes)
    ended = time.monotonic()
    finishing_runs = course.finish()
    finished = time.monotonic()
    return Report(
        seed=arguments.seed,
        engine=job.engine,
        minutes=(ended - began) / 60,
        record=feeder.record,
        chronicle=course.supervisor.chronicle,
        measured=throughputs(app.ledger, course.spans, feeder.record.delivered),
        faults=where.faults(),
        finishing_runs=finishing_runs,
        finishing_minutes=(finished - ended) / 60,
        comparison=compare(store, app.layout, feeder.record),
        verification=verification(job.verified(), feeder.record.expected, feeder.closed()),
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

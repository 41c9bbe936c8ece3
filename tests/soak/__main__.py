"""Feeds, kills and disturbs the job for some minutes, then proves that nothing differs.

python -m tests.soak --minutes 20 --seed 7 [--engine spark|native|plain] [--place s3|local]
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compactor.adapters.local.sqlite_claims import SqliteClaims
from compactor.adapters.stores import StoreSpec
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore
from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from tests.faults.s3_lake import as_toml
from tests.faults.s3_server import ROOT
from tests.soak.comparison import compare
from tests.soak.feeder import Feeder
from tests.soak.files import MAX_LINE_BYTES
from tests.soak.place import Place, place, s3_is_at_hand
from tests.soak.report import Report
from tests.soak.supervisor import Ending, Supervisor, lives
from tests.support.extras import VERSITYGW

TIMEOUT_SECONDS = 3
FINISHING_RUNS = 10
FINISHING_SECONDS = 900.0
LEASE_SECONDS = 3

_ON_SPARK = {Ending.KILL_ALL: 3, Ending.KILL_JVM: 2, Ending.KILL_PARENT: 2, Ending.TERMINATE: 1}
# A plain job has no JVM; and it starts in a second where Spark takes ten or more.
_ENDINGS = {"spark": _ON_SPARK, "native": _ON_SPARK, "plain": {Ending.KILL_ALL: 3, Ending.TERMINATE: 1}}
_YOUNG_SECONDS = {"spark": (1.0, 12.0), "native": (1.0, 12.0), "plain": (0.3, 2.0)}
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
        report = _soak(arguments, folder, where)
    _say("\n".join(report.lines()))
    if report.is_exact:
        shutil.rmtree(folder)
        return 0
    _say(f"NOT EXACT; what is left to look at is in {folder}")
    return 1


def _arguments(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--engine", choices=["spark", "native", "plain"], default="spark")
    parser.add_argument("--place", choices=["s3", "local"], help="S3 if there is a server for it")
    arguments = parser.parse_args(words)
    if arguments.place is None:
        arguments.place = "s3" if s3_is_at_hand() else "local"
        if arguments.place == "local":
            _say(f"{VERSITYGW.reason}; so the soak runs on plain folders, with kills and without faults of S3")
    return arguments


class Runs:
    """Tells from the signs of life that runs give whether another one is at work.

    Args:
        store: Where the signs are.
        layout: Their place.
    """

    def __init__(self, store: ObjectStore, layout: Layout) -> None:
        self._store = store
        self._folder = layout.runs_folder
        self._known: set[str] = set()

    def look(self) -> None:
        """From now on, only others count."""
        self._known = self._signs()

    def is_there_another(self) -> bool:
        return bool(self._signs() - self._known)

    def _signs(self) -> set[str]:
        return {info.uri for info in self._store.list(self._folder)}


def _soak(arguments: Namespace, folder: Path, where: Place) -> Report:
    config = folder / "compactor.toml"
    config.write_text(as_toml(_settings(arguments.engine, where, where.url)))
    direct = folder / "direct.toml"
    direct.write_text(as_toml(_settings(arguments.engine, where, where.direct_url)))
    store = StoreSpec(where.region or None, where.direct_url or None).open()
    layout = load_settings(direct, {}).layout()
    feeder = Feeder(
        store,
        App(load_settings(direct, {})),
        lambda: App(load_settings(config, {}), claims=SqliteClaims(str(folder / "claims.sqlite"), ttl_days=30)),
        seed=arguments.seed,
        for_spark=arguments.engine == "spark",
        pause_seconds=_PAUSE_SECONDS[arguments.engine],
    )
    weather = random.Random(f"{arguments.seed}:weather")
    runs = Runs(store, layout)

    def on_life() -> None:
        where.change_weather(weather)
        runs.look()

    supervisor = Supervisor(
        _job(arguments.engine, config, once=False),
        _environment(where),
        folder / "job.log",
        on_life=on_life,
        is_at_work=runs.is_there_another,
    )
    began = time.monotonic()
    feeder.start()
    try:
        all_lives = lives(arguments.seed, _ENDINGS[arguments.engine], _YOUNG_SECONDS[arguments.engine])
        supervisor.run(began + arguments.minutes * 60, all_lives)
    finally:
        feeder.stop()
    if feeder.failure:
        raise feeder.failure
    minutes = (time.monotonic() - began) / 60
    faults = where.faults()
    where.calm()
    finishing_runs = _finish(arguments.engine, folder, supervisor, feeder)
    return Report(
        seed=arguments.seed,
        engine=arguments.engine,
        minutes=minutes,
        record=feeder.record,
        chronicle=supervisor.chronicle,
        faults=faults,
        finishing_runs=finishing_runs,
        comparison=compare(store, layout, feeder.record),
        discrepancies=_discrepancies(direct, where),
    )


def _finish(engine: str, folder: Path, supervisor: Supervisor, feeder: Feeder) -> int:
    """Plan and run without faults until nothing is left; how many runs it took."""
    for runs in range(1, FINISHING_RUNS + 1):
        while not feeder.plan():
            time.sleep(LEASE_SECONDS / 3)
        supervisor.run_to_its_end(_job(engine, folder / "compactor.toml", once=True), FINISHING_SECONDS)
        if not feeder.waiting():
            return runs
    raise RuntimeError(
        f"{feeder.waiting()} manifests are left after {FINISHING_RUNS} runs without faults: see {folder}"
    )


def _discrepancies(config: Path, where: Place) -> int:
    """What `verify --deep` says, manifests that are not done included."""
    command = [sys.executable, "-m", "compactor", "--config", str(config), "verify", "--deep", "--json"]
    done = subprocess.run(command, env=_environment(where), stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    for each in found["discrepancies"][:10]:
        _say(f"verify --deep: {each}")
    return len(found["discrepancies"]) + int(found["unfinished"])


def _job(engine: str, config: Path, *, once: bool) -> list[str]:
    if engine == "plain":
        return [sys.executable, "-m", "tests.faults.plain_job", str(config)]
    return [sys.executable, "-m", "compactor", "--config", str(config), "run", *(["--once"] if once else [])]


def _environment(where: Place) -> dict[str, str]:
    return {**os.environ, **where.environment, "PYTHONPATH": str(ROOT)}


def _settings(engine: str, where: Place, url: str) -> dict[str, dict[str, object]]:
    return {
        "paths": {name: f"{where.root}/{name}" for name in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{where.root}/input"], "max_line_bytes": MAX_LINE_BYTES},
        # Kills befall innocent manifests, too, and here again and again.
        "stream": {"max_attempts": 1000, "trigger_interval_seconds": 1},
        "builder": {"claim_lease_seconds": LEASE_SECONDS, "target_manifest_bytes": 50_000},
        "aws": {"region": where.region, "endpoint_url": url, "timeout_seconds": TIMEOUT_SECONDS},
        "metrics": {"sink": "none"},
        "convert": {"engine": "auto" if engine == "plain" else engine},
        "spark": {"master": "local[2]", "conf": {"spark.driver.memory": "1g", "spark.ui.enabled": False}},
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

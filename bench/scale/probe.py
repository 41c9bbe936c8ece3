"""One process of the scale benchmark: measures a job on an existing state, on request.

python -m bench.scale.probe ROOT --engine spark|plain --open N

Each line on stdin requests one JSON object on stdout.
"""

import json
import sys
import threading
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil

from bench.measure import peak_bytes
from bench.scale.ledger import FIRST_DAY, write_decided
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Engine
from compactor.job.recovery import Recovery
from compactor.job.service import Service
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring import engines, operating, streaming
from compactor.wiring.app import App
from compactor.wiring.opening import spark_session

PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.002
_STATUS_REPEATS = 9
_LINES = b'{"id": "1", "amount": 1.10}\n{"id": "2"}\n'


class Job:
    """A service on one of two engines, run in a thread.

    Args:
        settings: The settings of the job.
        engine: `spark`, or `plain` for an engine and a stream in Python that start at once.
    """

    def __init__(self, settings: Settings, engine: str) -> None:
        self.app = App(settings)
        self.is_started: Callable[[], bool]
        self.poke: Callable[[], None] = lambda: None
        if engine == "spark":
            session = spark_session(self.app)
            self.service = streaming.service(self.app)
            self.is_started = lambda: bool(session.streams.active)
        else:
            self.service, self.is_started, self.poke = _plain(self.app)
        self._thread = threading.Thread(target=self.service.run, kwargs={"once": False}, daemon=True)

    def start(self) -> None:
        """Start the thread, and wait until the stream has started."""
        self._thread.start()
        _await(self.is_started, "the stream to start")

    def compact(self, raw: Path) -> None:
        """Deliver a small manifest, and wait until it is done."""
        manifest_id = f"small-{uuid.uuid4().hex}"
        file = raw / f"{manifest_id}.ndjson"
        file.write_bytes(_LINES)
        named = (ManifestFile(uri=str(file), size_bytes=len(_LINES)),)
        key = ManifestKey(FIRST_DAY.isoformat(), manifest_id)
        manifest = Manifest(manifest_id=key.id, date=key.date, created_at=self.app.clock.now(), files=named)
        self.app.store.put(self.app.layout.manifest(manifest_id), manifest.to_json())
        self.poke()
        _await(lambda: self.app.ledger.is_done(key), "a small manifest to be done")

    def stop(self) -> None:
        """Stop the service."""
        self.service.stop()
        self._thread.join(PATIENCE_SECONDS)


def _plain(app: App) -> tuple[Service, Callable[[], bool], Callable[[], None]]:
    from tests.support.fakes import ListSource  # noqa: PLC0415 - it comes with the repository only

    source = ListSource(app.store, app.layout.manifests_folder)
    return streaming.service_on(app, plain_engine(app), source), lambda: source.starts > 0, source.poke


def plain_engine(app: App) -> Engine:
    """An engine in this process, which writes what the settings say."""
    from tests.support.fakes import PlainEngine  # noqa: PLC0415 - it comes with the repository only

    return PlainEngine(app.store, metadata_columns=app.settings.metadata_columns)


def _await(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s for {what}")
        time.sleep(_POLL_SECONDS)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def settings_at(root: Path) -> Settings:
    """The settings of a job in a folder."""
    return parse_settings(
        {
            "paths": {place: str(root / place) for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [str(root / "raw")]},
            "stream": {"trigger_interval_seconds": 0.1},
            "metrics": {"sink": "none"},
            "spark": {"conf": {"spark.master": "local[2]"}},
        }
    )


def measure(root: Path, engine: str, *, open_manifests: int) -> dict[str, float]:
    """Measure everything once.

    Args:
        root: The folder of the job.
        engine: `spark` or `plain`.
        open_manifests: The manifests that an earlier run left to roll forward.

    Returns:
        Seconds by operation, and the peak memory of the driver in bytes.
    """
    settings = settings_at(root)
    began = time.perf_counter()
    job = Job(settings, engine)
    job.start()
    found = {"start-up": time.perf_counter() - began}
    found["manifest"] = _seconds(lambda: job.compact(root / "raw"))
    job.stop()
    # It takes milliseconds, so one pause of the machine would double it.
    found["status"] = median(_seconds(lambda: _status(settings)) for _ in range(_STATUS_REPEATS))
    found["recovery"] = _recovery(settings, engine, root, open_manifests)
    return {**found, "driver": float(peak_bytes(psutil.Process()))}


def _status(settings: Settings) -> None:
    operating.status_reader(App(settings)).read()


def _recovery(settings: Settings, engine: str, root: Path, manifests: int) -> float:
    app = App(settings)
    ids = [f"open-{uuid.uuid4().hex}" for _ in range(manifests)]
    for manifest_id in ids:
        write_decided(app.layout, manifest_id, str(root / "raw"))
    runner = streaming.scheduler(app, engines.engine(app) if engine == "spark" else plain_engine(app))
    recovery = Recovery(app.state, app.runs, operating.cleaner(app))
    seconds = _seconds(lambda: runner.resume([each.manifest_id for each in recovery.find()]))
    if not all(app.ledger.is_done(ManifestKey(FIRST_DAY.isoformat(), manifest_id)) for manifest_id in ids):
        raise RuntimeError("recovery did not roll the open manifests forward")
    return seconds


def main() -> None:
    """Measure once for each line on stdin, and print the figures."""
    parser = ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--engine", choices=("spark", "plain"), required=True)
    parser.add_argument("--open", type=int, required=True)
    given = parser.parse_args()
    for _ in sys.stdin:
        print(json.dumps(measure(given.root, given.engine, open_manifests=given.open)), flush=True)


if __name__ == "__main__":
    main()

"""Delivers manifests to ten streams: each stream has a producer, and one of them can flood."""

import os
import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.layout import ManifestKey
from compactor.demo.events import make_event_lines
from compactor.wiring.app import App

STREAMS = tuple(f"kind-{number}" for number in range(10))
FLOODING = STREAMS[0]

LINES = {FLOODING: 500} | {name: round(50 * 1.5**number) for number, name in enumerate(STREAMS[1:])}
"""The lines of a manifest of each stream: from 50, which are 34 kB, to 1,281."""

LEAST_WAITING = 100
"""So many manifests of a flood always wait: it lasts until it is told to end."""

_BAD_LINE = b"no json\n"
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """What is delivered.

    Attributes:
        seconds: How long each phase lasts.
        every_seconds: The time between two manifests of a stream, on average.
        flood: How many manifests of the flooding stream come at once.
    """

    seconds: float
    every_seconds: float
    flood: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A manifest that was delivered.

    Attributes:
        stream: Its stream.
        phase: The phase of the run.
        key: Its key in the ledger of the stream.
        at: When, in seconds since 1970.
        lines: Lines of its file, of which the last is no JSON.
        size_bytes: Of its file.
    """

    stream: str
    phase: str
    key: ManifestKey
    at: float
    lines: int
    size_bytes: int


@dataclass(slots=True)
class Producer:
    """Delivers the manifests of one stream. Each names one file, a link to one that is made once.

    Attributes:
        app: The components of the stream.
        ready: The file to link to.
        raw: The folder for the links, on the same disk.
        lines: Its lines.
        day: The date in the names.
    """

    app: App
    ready: Path
    raw: Path
    lines: int
    day: str
    delivered: list[Delivery] = field(default_factory=list)

    def deliver(self, phase: str) -> None:
        """Deliver one manifest."""
        stream, number = self.app.settings.name, len(self.delivered)
        path = self.raw / f"{self.day}-{number:06d}.ndjson"
        os.link(self.ready, path)
        info = self.app.store.stat(str(path))
        if info is None:
            raise FileNotFoundError(f"{path}: went away as soon as it was there")
        now = datetime.now(UTC)
        file = ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=now)
        manifest = Manifest(manifest_id=f"{stream}-{number:06d}", date=self.day, created_at=now, files=(file,))
        self.app.store.put(f"{self.app.layout.manifests_folder}{manifest.manifest_id}.json", manifest.to_json())
        delivery = Delivery(stream, phase, manifest.key, now.timestamp(), self.lines, info.size_bytes)
        self.delivered.append(delivery)

    def steadily(self, phase: str, load: Load) -> None:
        """Deliver manifests at a steady rate, each at a random time of its period, the same ones in each phase."""
        chance, began = random.Random(self.app.settings.name), time.monotonic()
        for period in range(int(load.seconds / load.every_seconds)):
            due = began + (period + chance.random()) * load.every_seconds
            time.sleep(max(0.0, due - time.monotonic()))
            self.deliver(phase)

    def flood(self, phase: str, at_once: int, ended: threading.Event) -> None:
        """Deliver many manifests at once, again whenever only few of them still wait."""
        while not ended.is_set():
            waiting = sum(1 for _ in self.app.store.list(self.app.layout.manifests_folder))
            if waiting < LEAST_WAITING:
                for _ in range(at_once):
                    self.deliver(phase)
            ended.wait(_LOOK_SECONDS)


class Traffic:
    """The producers of all streams.

    Args:
        apps: The components of each stream, by its name.
        home: The folder of the run, which gets the files that are linked to.
    """

    def __init__(self, apps: Mapping[str, App], home: Path) -> None:
        (home / "ready").mkdir()
        self._producers = [_producer(apps[name], home / "ready" / name, lines) for name, lines in LINES.items()]

    @property
    def delivered(self) -> list[Delivery]:
        """All manifests that were delivered."""
        return [each for producer in self._producers for each in producer.delivered]

    def run(self, phase: str, load: Load, *, floods: bool) -> None:
        """Let all producers deliver for one phase; with `floods`, one of them floods until the others have ended."""
        ended = threading.Event()
        flooding = [each for each in self._producers if floods and each.app.settings.name == FLOODING]
        with ThreadPoolExecutor(len(self._producers)) as pool:
            floods_on = [pool.submit(each.flood, phase, load.flood, ended) for each in flooding]
            steady = [pool.submit(each.steadily, phase, load) for each in self._producers if each not in flooding]
            wait([*steady], return_when=FIRST_EXCEPTION)
            ended.set()
            for each in (*floods_on, *steady):
                each.result()


def _producer(app: App, ready: Path, lines: int) -> Producer:
    raw = Path(app.settings.input.allowed_prefixes[0])
    raw.mkdir(parents=True)
    ready.write_bytes(make_event_lines(app.settings.name, lines - 1) + _BAD_LINE)
    return Producer(app, ready, raw, lines, datetime.now(UTC).date().isoformat())

"""The job, the planner, `data erase` and upkeep of a table, without Spark: they die or stop where they are told to.

python -m tests.faults.plain_job CONFIG [--engine native|plain] [--plan PREFIX] [--die-at POINT | --stop-at POINT]
    [--in-place] [--visit N] [--only ID] [--target-file-bytes N] [--record FILE]
    [(--erase FILE | --maintain) [--die-at-change N]] [--scratch FOLDER]
"""

import itertools
import os
import signal
import sys
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.stores import RoutedStore, StoreSpec
from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from compactor.core.errors import CompactorError
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectWriter
from compactor.settings.settings import load_settings
from compactor.wiring import finding, planning, streaming, table_sink
from compactor.wiring.app import App
from compactor.wiring.rebuilding import eraser
from tests.protocol.traces import Recorder
from tests.support.engines import DEFAULT, WITHOUT_SPARK, engine_without_spark

WRITING = "writing"
"""A point within a step: half of some bytes of a staged file are written, and no file can be seen yet."""

SAMPLE_BYTES = 500
"""A first file is sample enough, so that later ones bring keys that the first round knows no column for."""

TARGET_FILE_BYTES = 500

LEASE_SECONDS = 0.5
"""How long a dead planner keeps its files claimed."""

LONGEST_PAUSE_SECONDS = 0.1
"""After a failed commit to a table."""

RECORDED = ("one", "two", "late")
"""The manifests of which `--record` writes down what they go through; the name of its file is their date."""


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--engine", choices=WITHOUT_SPARK, default=DEFAULT)
    parser.add_argument("--target-file-bytes", type=int, default=TARGET_FILE_BYTES, help="of the native engine")
    parser.add_argument("--in-place", action="store_true", help="write the files of a table under their final names")
    parser.add_argument("--plan", help="plan this folder instead of running the job")
    parser.add_argument("--die-at", choices=[*CrashPoint, *PlanCrashPoint, WRITING], help="end by SIGKILL")
    parser.add_argument(
        "--stop-at", choices=[*CrashPoint, *PlanCrashPoint, WRITING], help="stop by SIGSTOP, until SIGCONT comes"
    )
    parser.add_argument("--visit", type=int, default=1, help="at which time that it comes there")
    parser.add_argument("--only", help="only at steps of this manifest")
    parser.add_argument("--record", type=Path, help="write down what manifests go through; see tests.protocol.traces")
    parser.add_argument("--erase", type=Path, help="erase the lines with these values of `user_id`, and such input")
    parser.add_argument("--maintain", action="store_true", help="do the upkeep of the table, and keep one snapshot")
    parser.add_argument("--die-at-change", type=int, default=0, help="end by SIGKILL before this change, from 1")
    parser.add_argument("--scratch", type=Path, help="the folder of temporary files")
    arguments = parser.parse_args(words)
    if arguments.scratch:
        arguments.scratch.mkdir(exist_ok=True)
        tempfile.tempdir = os.environ["TMPDIR"] = str(arguments.scratch)
    settings = replace(
        load_settings(arguments.config, {}), claim_lease_seconds=LEASE_SECONDS, in_place=arguments.in_place
    )
    table_sink.MANIFESTS_PER_COMMIT = 1  # each manifest is a batch of its own
    on_crash_point = interruption(arguments)
    spec = App(settings).store_spec
    store = StoreWithHalves(spec, lambda: on_crash_point(WRITING, ""))
    if arguments.record:
        keys = [ManifestKey(arguments.record.stem, name) for name in RECORDED]
        recorder = Recorder(arguments.record, settings.layout(), keys)
        store = RecordedStore(spec, lambda: on_crash_point(WRITING, ""), recorder)
    app = App(settings, on_crash_point=on_crash_point, store=store)
    try:
        if arguments.erase:
            changes = Changes(arguments.die_at_change)
            return erase(App(settings, store=CountingStore(spec, changes)), arguments.erase, changes)
        if arguments.maintain:
            changes = Changes(arguments.die_at_change)
            return maintain(App(settings, store=CountingStore(spec, changes)), changes)
        return plan(app, arguments.plan) if arguments.plan else run(app, arguments)
    except CompactorError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1


class StoreWithHalves(RoutedStore):
    """Tells of each half of some bytes that is written to a growing object.

    Args:
        spec: How to reach the stores.
        on_half: What to do then.
    """

    def __init__(self, spec: StoreSpec, on_half: Callable[[], None]) -> None:
        super().__init__(spec)
        self._on_half = on_half

    @contextmanager
    def writer(self, uri: str) -> Iterator[ObjectWriter]:
        with super().writer(uri) as writer:
            yield _HalvingWriter(writer, self._on_half)

    @contextmanager
    def new_writer(self, uri: str) -> Iterator[ObjectWriter]:
        with super().new_writer(uri) as writer:
            yield _HalvingWriter(writer, self._on_half)


class RecordedStore(StoreWithHalves):
    """Writes down what manifests went through, after each change.

    Args:
        spec: How to reach the stores.
        on_half: See `StoreWithHalves`.
        recorder: Writes it down.
    """

    def __init__(self, spec: StoreSpec, on_half: Callable[[], None], recorder: Recorder) -> None:
        super().__init__(spec, on_half)
        self._recorder = recorder
        self._one_change = threading.RLock()
        recorder.note(self, begins=True)

    def create(self, uri: str, data: bytes) -> bool:
        with self._change():
            return super().create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        with self._change():
            super().put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        with self._change():
            super().upload(uri, path)

    @contextmanager
    def writer(self, uri: str) -> Iterator[ObjectWriter]:
        with super().writer(uri) as writer:
            yield writer
        with self._change():
            pass

    @contextmanager
    def new_writer(self, uri: str) -> Iterator[ObjectWriter]:
        with super().new_writer(uri) as writer:
            yield writer
        with self._change():
            pass

    def copy(self, source: str, target: str) -> None:
        with self._change():
            super().copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            with self._change():
                super().delete([uri])

    def delete_version(self, uri: str, etag: str) -> bool:
        with self._change():
            return super().delete_version(uri, etag)

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self._one_change:
            yield
            self._recorder.note(self)


class Changes:
    """Counts what a process changes in store and catalog, and ends it before one of these changes.

    Args:
        die_at: Before which, from 1; 0 for none.

    Attributes:
        made: What each of them was.
    """

    def __init__(self, die_at: int) -> None:
        self.made: list[str] = []
        self._die_at = die_at
        self._one = threading.RLock()

    @contextmanager
    def next(self, what: str) -> Iterator[None]:
        with self._one:
            self.made.append(what)
            if len(self.made) == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            yield


class CountingStore(RoutedStore):
    """Counts each change.

    Args:
        spec: How to reach the stores.
        changes: Counts them.
    """

    def __init__(self, spec: StoreSpec, changes: Changes) -> None:
        super().__init__(spec)
        self.changes = changes

    def create(self, uri: str, data: bytes) -> bool:
        with self.changes.next(f"create {uri}"):
            return super().create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        with self.changes.next(f"put {uri}"):
            super().put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        with self.changes.next(f"upload {uri}"):
            super().upload(uri, path)

    def copy(self, source: str, target: str) -> None:
        with self.changes.next(f"copy {target}"):
            super().copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        for uri in uris:
            with self.changes.next(f"delete {uri}"):
                super().delete([uri])

    def delete_version(self, uri: str, etag: str) -> bool:
        with self.changes.next(f"delete {uri}"):
            return super().delete_version(uri, etag)


class _HalvingWriter:
    def __init__(self, writer: ObjectWriter, on_half: Callable[[], None]) -> None:
        self._writer = writer
        self._on_half = on_half

    def abort(self) -> None:
        self._writer.abort()

    def write(self, data: bytes) -> None:
        half = len(data) // 2
        self._writer.write(data[:half])
        self._on_half()
        self._writer.write(data[half:])


def interruption(arguments: Namespace) -> Callable[[str, str], None]:
    """What happens to this process at its steps, and amid the files that it writes."""
    visits = itertools.count(1)

    def on_crash_point(step: str, manifest_id: str) -> None:
        if step not in {arguments.die_at, arguments.stop_at} or arguments.only not in {None, manifest_id}:
            return
        if next(visits) != arguments.visit:
            return
        if arguments.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        # Sent to this very thread, for it to stop before it does another thing, and all others with it.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    return on_crash_point


def plan(app: App, prefix: str) -> int:
    # In one thread: if it stops, no other one may have the lock of the claims, for it would keep it.
    finding.plan(app, prefix, using=replace(planning.planner(app), groups_at_once=1))
    return 0


@contextmanager
def counted(changes: Changes) -> Iterator[None]:
    """What is asked of a catalog counts before and after it, and so does each file of metadata that goes."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - the same

    from compactor.adapters.iceberg.change import Change  # noqa: PLC0415 - most jobs have no table

    send, delete = Change.send, PyArrowFileIO.delete

    def sent(change: Change, catalog: Any) -> Any:
        with changes.next("commit"):
            answer = send(change, catalog)
        with changes.next("answer"):
            return answer

    def deleted(io: PyArrowFileIO, location: Any) -> None:
        with changes.next(f"delete {location if isinstance(location, str) else location.location}"):
            delete(io, location)

    with patch.object(Change, "send", sent), patch.object(PyArrowFileIO, "delete", deleted):
        yield


def erase(app: App, values: Path, changes: Changes) -> int:
    """Erase, and tell how many changes that took."""
    wanted = frozenset(values.read_text().split())
    found = eraser(app, key="user_id", values=wanted, inputs="delete", by="a person")
    with counted(changes):
        report = found.erase(found.scanner.scan())
    sys.stdout.write("".join(f"{each.why}\n" for each in report.refused))
    sys.stdout.write(f"{len(changes.made)} changes\n")
    return 1 if report.failed else 3 if report.left or report.discrepancies else 0


def maintain(app: App, changes: Changes) -> int:
    """Do the upkeep, and tell the changes that it made, one a line."""
    with counted(changes):
        table_sink.maintainer(app, 0, 1).maintain()
    sys.stdout.write("".join(f"{each}\n" for each in changes.made))
    return 0


def run(app: App, arguments: Namespace) -> int:
    engine = engine_without_spark(
        arguments.engine, app, rows_per_file=50, target_file_bytes=arguments.target_file_bytes
    )
    with (
        patch("compactor.engines.native.engine.SAMPLE_BYTES", SAMPLE_BYTES),
        patch("compactor.job.table_commits.LONGEST_PAUSE_SECONDS", LONGEST_PAUSE_SECONDS),
    ):
        source = ListedManifests(app.store, app.layout.manifests_folder)
        report = streaming.service_on(app, engine, source).run(once=True)
    return 3 if report.dead_lettered else 0


if __name__ == "__main__":
    sys.exit(main())

"""The benchmark under a steady load: feeder, builder, verification, and when a backlog counts as growing."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("psutil")

import psutil

from bench.measure import family
from bench.sustained.building import Building, Built
from bench.sustained.feeder import Fed, Target, feed, source_name
from bench.sustained.flow import Flow, Passage
from bench.sustained.messages import Message, PipedInbox, read_announcement
from bench.sustained.processes import Watch, started
from bench.sustained.proof import Proved, Prover
from bench.sustained.report import fields, figures, judge
from bench.sustained.run import Result
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.changes import Commit
from compactor.settings.settings import parse_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine

DAY = "2026-01-02"
MB = 1_000_000
GOOD = b'{"id": "1"}\n{"id": "2"}\n'


@pytest.fixture
def app(tmp_path: Path) -> App:
    """A job that makes a manifest of two files of `GOOD`, or of what is left over at the next turn of the sealer."""
    return App(
        parse_settings(
            {
                "paths": {place: str(tmp_path / place) for place in ("manifests", "output", "state")},
                "input": {"allowed_prefixes": [str(tmp_path / "raw")]},
                "builder": {"target_manifest_bytes": 2 * len(GOOD), "max_wait_seconds": 60},
                "metrics": {"sink": "none"},
            }
        )
    )


@pytest.fixture
def messages(tmp_path: Path) -> list[str]:
    """The messages of the feeder about five links to two files."""
    for folder in ("ready", "raw"):
        (tmp_path / folder).mkdir()
    for name in ("a.ndjson", "b.ndjson"):
        (tmp_path / "ready" / name).write_bytes(GOOD)
    told: list[str] = []
    rate = len(GOOD) / 0.02
    store, etags = LocalStore(), {}
    for path in (tmp_path / "ready").iterdir():
        info = store.stat(str(path))
        assert info is not None
        etags[path.name] = info.etag or ""
    target = Target(tmp_path / "raw", str(tmp_path / "raw"), DAY)
    fed = feed(tmp_path / "ready", etags, target, bytes_per_second=rate, seconds=0.1, tell=told.append)
    assert (fed.files, fed.bytes) == (5, 5 * len(GOOD))
    assert 0.1 <= fed.seconds < 5
    return told


def test_each_link_is_announced_as_it_is_on_the_disk(messages: list[str], tmp_path: Path) -> None:
    """Links take ready-made files in turns, and each announcement names path, length and version."""
    (files,) = zip(*(read_announcement(message).files for message in messages), strict=True)
    assert [source_name(file.uri) for file in files] == ["a.ndjson", "b.ndjson", "a.ndjson", "b.ndjson", "a.ndjson"]
    assert {file.uri for file in files} == {str(path) for path in (tmp_path / "raw").iterdir()}
    store = LocalStore()
    for file in files:
        info = store.stat(file.uri)
        assert info is not None
        assert (file.size_bytes, file.etag) == (info.size_bytes, info.etag)
    assert sorted(files, key=lambda file: file.event_time) == list(files)


def build(app: App, messages: list[str]) -> Built:
    def lines() -> Iterator[str]:
        yield from messages[:3]
        while not any(app.store.list(app.layout.manifests_folder)):
            time.sleep(0.01)
        yield from messages[3:]

    return Building(app.settings, PipedInbox(lines()), window_seconds=0.05, seal_seconds=0.4).run()


def test_what_is_fed_is_built_and_proved_and_removed(app: App, messages: list[str], tmp_path: Path) -> None:
    """Every link is in one manifest; once it is done and verified, its files are gone and only the ledger is left."""
    built = build(app, messages)
    assert (built.messages, built.returned) == (5, 0)
    manifests = [info.uri for info in app.store.list(app.layout.manifests_folder)]
    assert len(manifests) == built.manifests >= 2
    prover = Prover(app, {"a.ndjson": 2, "b.ndjson": 2})
    prover.check()
    assert prover.proved.manifests == 0
    assert (
        not streaming.scheduler(app, PlainEngine(app.store, metadata_columns=app.settings.metadata_columns))
        .run(manifests)
        .failures
    )
    prover.check()
    prover.finish(5)
    proved = prover.proved
    assert proved.faults == []
    assert (proved.manifests, proved.lines, proved.rows) == (built.manifests, 10, 10)
    assert len(proved.passages) == 5
    assert all(0 <= passage.seconds < 60 for passage in proved.passages.values())
    assert list((tmp_path / "raw").iterdir()) == []
    assert list(app.store.list(f"{app.layout.output}/")) == []


def done(app: App, messages: list[str]) -> Commit:
    """The first commit, with everything done."""
    build(app, messages)
    manifests = [info.uri for info in app.store.list(app.layout.manifests_folder)]
    streaming.scheduler(app, PlainEngine(app.store, metadata_columns=app.settings.metadata_columns)).run(manifests)
    commit = app.ledger.outcome(next(iter(app.ledger.manifests())))
    assert isinstance(commit, Commit)
    return commit


def test_what_does_not_add_up_is_told_and_kept(app: App, messages: list[str]) -> None:
    """An output that is gone, or lines that are too few, is a fault, and no file of that manifest is deleted."""
    commit = done(app, messages)
    Path(commit.outputs[0].final).unlink()
    prover = Prover(app, {"a.ndjson": 3, "b.ndjson": 2})
    prover.check()
    assert any(commit.outputs[0].final in fault for fault in prover.proved.faults)
    assert any("expected 3 lines" in fault for fault in prover.proved.faults)
    assert all(Path(file.uri).exists() for file in commit.files)


def test_a_file_that_is_lost_or_left_or_doubled_is_told(app: App, messages: list[str], tmp_path: Path) -> None:
    """At the end every fed file is committed once, and no other file is left."""
    commit = done(app, messages)
    prover = Prover(app, {"a.ndjson": 2, "b.ndjson": 2})
    prover.proved.passages[commit.files[0].uri] = Passage(1, 0, 0)
    prover.check()
    assert prover.proved.faults == [f"{commit.files[0].uri}: was committed before"]
    shutil.copy(Path(commit.outputs[0].final), tmp_path / "output" / "stray.parquet")
    prover.finish(6)
    assert any("expected the 6 that were fed" in fault for fault in prover.proved.faults)
    assert any(fault.startswith(f"{tmp_path}/output/: ") for fault in prover.proved.faults)


def test_failed_messages_come_again(app: App, messages: list[str]) -> None:
    """An unreadable message returns to the queue, and the others are built."""
    inbox = PipedInbox(["{", *messages])
    building = Building(app.settings, inbox, window_seconds=0.01, seal_seconds=0.05)
    building._build(inbox.take(6, 5))
    assert inbox.take(6, 0) == [Message("{")]
    assert (building._built.messages, building._built.returned) == (5, 1)


def steady(seconds: int, delay: float, *, slowdown: float = 0.0, megabytes: int = 10) -> Flow:
    """A file each second, visible after some delay that grows by so much each second."""
    passages = [Passage(megabytes * MB, 1000 + at, 1000 + at + delay + at * slowdown) for at in range(seconds)]
    return Flow(passages, float(seconds))


def test_rates_and_delays_of_a_steady_flow() -> None:
    """What comes in becomes visible as fast; the backlog is the rate times the delay."""
    flow = steady(300, 19.5)
    assert flow.input_rate == flow.processing_rate == 10 * MB
    assert [flow.backlog(at) for at in (0, 10, 100, 250)] == [10 * MB, 110 * MB, 200 * MB, 200 * MB]
    assert (flow.growth_bytes, flow.growth_rate) == (0, 0)
    assert (flow.delays.percentile(50), flow.delays.percentile(99)) == (19.5, 19.5)


def test_a_flow_that_falls_behind() -> None:
    """A loss of a twentieth of each second adds up; the means of whole minutes show its rate."""
    flow = steady(300, 10, slowdown=0.05)
    assert flow.processing_rate == pytest.approx(10 * MB / 1.05, rel=0.01)
    assert flow.growth_rate == pytest.approx(10 * MB * (1 - 1 / 1.05), rel=0.05)
    assert flow.growth_bytes == pytest.approx(150 * flow.growth_rate)


def result_of(flow: Flow, *, faults: list[str]) -> Result:
    fed = Fed(len(flow.delays.counts), 3_000 * MB, flow.fed_seconds)
    return Result(fed, Built(), Proved(faults=faults), {"job": 1.0}, 1.5, 2**30, 12.0)


@pytest.mark.parametrize(
    ("flow", "faults", "expected"),
    [
        (steady(300, 20), [], ()),
        (steady(300, 20), ["lost"], ("lost",)),
        (steady(300, 20, slowdown=0.05), [], ("the backlog grew: +72 MB, +0.5 MB/s",)),
        (steady(300, 20, slowdown=0.01), [], ()),
        (steady(200, 20, slowdown=0.05), [], ()),
        (steady(300, 20, megabytes=9), [], ("9.0 MB/s were fed, expected 10.0",)),
    ],
    ids=["held", "lost", "grew", "by less than a manifest", "too short to say", "fed too little"],
)
def test_when_a_load_was_held(flow: Flow, faults: list[str], expected: tuple[str, ...]) -> None:
    """The load was held if all of it was fed, the backlog grew by less than a manifest, and nothing was lost."""
    result = result_of(flow, faults=faults)
    verdict = judge(flow, result, asked_rate=10 * MB, manifest_bytes=50 * MB)
    assert verdict.faults == expected
    shown = dict(fields(flow, result, verdict))
    assert shown["held"].startswith("no: " if expected else "yes")
    assert json.loads(json.dumps(figures(flow, result, verdict)))["faults"] == list(expected)


def test_processes_are_watched_and_ended(tmp_path: Path) -> None:
    """A process that still runs at the end is ended with its children, and its use is known."""
    nap = "[sys.executable, '-c', 'import time; time.sleep(99)']"
    # The system counts processor time in ticks: a process that has just started may have used none.
    work = "while sum(os.times()[:2]) < 0.05: pass"
    code = f"import os, subprocess, sys, time\n{work}\nsubprocess.Popen({nap}); print('up', flush=True); time.sleep(99)"
    module = ["timeit", "--number", "1", "--repeat", "1", code]
    with started(module, tmp_path / "log", stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        with Watch({"sleeper": child.pid}) as watch:
            assert watch.processor_seconds()["sleeper: driver"] > 0
            assert watch.processor_seconds().keys() == {"sleeper: driver", "sleeper: tasks"}
            processes = family(psutil.Process(child.pid))
    assert len(processes) == 2
    assert not any(process.is_running() for process in processes)
    assert watch.peak_bytes > MB

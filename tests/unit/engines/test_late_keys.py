"""New keys that two drivers add at the same time, with the native engine."""

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from compactor.adapters.local.store import LocalStore
from compactor.core.crash_points import CrashPoint
from compactor.core.errors import StoreUnavailable
from compactor.core.ports import ObjectStore
from compactor.job.results import Results
from compactor.wiring import streaming
from tests.support import extras
from tests.support.engines import NATIVE, engine_without_spark
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness
from tests.support.memory_store import MemoryStore

extras.NATIVE.need()

TARGET_FILE_BYTES = 200


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """A harness whose first manifest is committed, so that its keys are known."""
    monkeypatch.setattr("compactor.engines.native.engine.SAMPLE_BYTES", 100)
    monkeypatch.setattr("compactor.job.service.FIRST_PAUSE_SECONDS", 0.0)
    made = Harness(root=str(tmp_path), store=MemoryStore() if request.param == "memory" else LocalStore())
    first = made.deliver("first", b'{"id":"first"}\n')
    assert drive(made, first, lambda: None).failures == {}
    return made


def drive(harness: Harness, uri: str, on_first_round: Callable[[], object]) -> Results:
    """Run a separate driver for one manifest, which waits when it has found its new keys."""
    app = harness.app(on_crash_point=lambda step, _: on_first_round() if step is CrashPoint.INSPECTED else None)
    engine = engine_without_spark(NATIVE, app, rows_per_file=2, target_file_bytes=TARGET_FILE_BYTES)
    return streaming.scheduler(app, engine).run([uri])


def files(name: str, *keys: str) -> list[bytes]:
    """Three files, of which the last has new keys."""
    known = [b"".join(b'{"id":"%s-%d-%d"}\n' % (name.encode(), at, line) for line in range(9)) for at in range(3)]
    new = "".join(f',"{key}":"{name}"' for key in keys).encode()
    return [*known[:2], known[2] + b'{"id":"%s"%s}\nbad\n' % (name.encode(), new)]


@pytest.mark.parametrize("keys", [("right",), ("left",), ("both", "right"), ("LEFT", "both")])
def test_two_drivers_bring_keys_at_the_same_time(harness: Harness, keys: tuple[str, ...]) -> None:
    """The second driver builds on the version of the first: every line once, each key a column that it keeps."""
    uris = [harness.deliver("a", *files("a", "left", "both")), harness.deliver("b", *files("b", *keys))]
    both_know = threading.Barrier(2, timeout=30)
    results: list[Results] = []
    drivers = [
        threading.Thread(target=lambda uri=uri: results.append(drive(harness, uri, both_know.wait))) for uri in uris
    ]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    assert [result.failures for result in results] == [{}, {}]
    commits = [harness.commit(name) for name in "ab"]
    assert all(commit.redone_bins for commit in commits)
    for commit in commits:
        versions = {file.schema_version for file in commit.outputs}
        assert None in versions, "a file with the new keys has the commit's version"
        assert versions - {None} == {1}, "the others have the one that they were written with"
    versions = list(harness.app().registry.versions())
    assert {column.key for column in versions[-1].columns} == {"id", "left", "both", *keys}
    assert all(newer.columns[: len(older.columns)] == older.columns for older, newer in pairwise(versions))
    names = [column.name for column in versions[-1].columns]
    assert len({name.lower() for name in names}) == len(names)
    assert harness.verification().discrepancies == []
    assert ids(harness) == {"first": 1, **{line_id: 1 for name in "ab" for line_id in expected_ids(name)}}


@pytest.mark.parametrize("harness", ["memory"], indirect=True)
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("lost_answer", [False, True])
def test_trouble_at_a_store_call_while_keys_are_late(harness: Harness, lost_answer: bool, every: int) -> None:
    """Whichever store call fails, done or not done: the output is exact, and no manifest is blamed."""
    names = []
    for call in range(1, 1000, every):
        names.append(f"m{call}")
        harness.deliver(names[-1], *files(names[-1], f"only{call}"))
        store = FaultyStore(harness.store)
        (store.lose_answer_at if lost_answer else store.unavailable_at)(call)
        with suppress(StoreUnavailable):  # the trouble came before or after all work, and ended the process
            run_once(harness, store)
        run_once(harness, harness.store)
        if store.calls["any"] < call:
            break
    assert len(names) > 5
    assert ids(harness) == {"first": 1, **{line_id: 1 for name in names for line_id in expected_ids(name)}}
    assert harness.verification().discrepancies == []


def run_once(harness: Harness, store: ObjectStore) -> None:
    app = harness.app(store=store)
    engine = engine_without_spark(NATIVE, app, rows_per_file=2, target_file_bytes=TARGET_FILE_BYTES)
    assert harness.run_once(engine=engine, store=store).dead_lettered == 0


def expected_ids(name: str) -> list[str]:
    return [name, *(f"{name}-{at}-{line}" for at in range(3) for line in range(9))]


def ids(harness: Harness) -> dict[str, int]:
    """How often each id is in the output."""
    found: dict[str, int] = {}
    for info in harness.store.list(harness.layout.output + "/"):
        for row in harness.table(info.uri):
            found[row["id"]] = found.get(row["id"], 0) + 1
    return found

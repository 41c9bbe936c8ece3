"""A manifest whose files decode to far too much leaves the rest to manifests of their own: nothing lost or doubled."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

import pytest

from compactor.core.crash_points import CrashPoint, OnCrashPoint, RedriveCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import CompactorError
from compactor.core.ports import ObjectStore
from compactor.job.staging import MOST_FOLLOWING, MOST_FOLLOWING_FILES, may_be_followed
from compactor.ops.trace.trace import TraceState
from compactor.wiring import operating
from tests.support.harness import DAY, DiedError, Harness
from tests.support.interleaving import interleave
from tests.support.rebuilding import WatchedStore, rebuild
from tests.support.redriving import LEASE_SECONDS, new_harness, plan, redrive, rows_of

NewHarness = Callable[[], Harness]
IDS = ["m1", "m1-r1", "m1-r2"]
LINES = b'{"n":"%d"}\nbad\n'
POINTS = [
    CrashPoint.DECIDED,
    RedriveCrashPoint.RECORDED,
    RedriveCrashPoint.DELIVERED,
    CrashPoint.PUBLISHED,
    CrashPoint.DONE,
    CrashPoint.CLOSED,
]


@pytest.fixture
def lake() -> Harness:
    """A lake in which a manifest reads one file."""
    harness = new_harness()
    harness.task_bytes = 0
    return harness


@pytest.fixture
def new_lake() -> NewHarness:
    """Makes lakes in which a manifest reads one file, each with a manifest of three."""

    def made() -> Harness:
        harness = Harness()
        harness.task_bytes = 0
        deliver(harness, 3)
        return harness

    return made


def deliver(harness: Harness, files: int) -> None:
    harness.deliver("m1", *[LINES % number for number in range(files)])


def read_by(harness: Harness, manifest_id: str) -> list[str]:
    return [file.uri for file in harness.commit(manifest_id).files if file.status == "compacted"]


def drive(harness: Harness, store: ObjectStore | None = None, at: OnCrashPoint = ignore_crash_point) -> None:
    """A driver that takes what waits, and what waits then."""
    for _ in IDS:
        harness.runner(on_crash_point=at, store=store).run(harness.waiting())


def check(harness: Harness) -> None:
    """Every line is there once, each manifest has read one file, and none needs an operator."""
    harness.check_exact()
    assert [read_by(harness, each) for each in IDS] == [[f"/w/raw/m1-{number}.ndjson"] for number in range(3)]
    assert len(list(harness.ledger.manifests())) == len(IDS)
    verified = harness.verification()
    assert verified.quarantined_by_status == {"deferred": 3}
    assert verified.open_files == []


def test_one_file_each(new_lake: NewHarness) -> None:
    """One run reads all files, and tells an operator of none."""
    harness = new_lake()
    report = harness.run_once()
    check(harness)
    assert (report.committed, report.quarantined_files, report.records) == (3, 0, 3)
    assert redrive(harness, "files").redriven == ()


@pytest.mark.parametrize("manifest_id", IDS[:2])
@pytest.mark.parametrize("point", POINTS)
def test_crash_points(new_lake: NewHarness, point: StrEnum, manifest_id: str) -> None:
    """A driver dies at a step, or is held up there while another does all there is, and goes on."""
    interleave(
        point,
        new_lake,
        lambda harness, at: drive(harness, at=at),
        Harness.run_once,
        check,
        occurrence=1 + IDS.index(manifest_id),
    )


def test_death_at_every_change(new_lake: NewHarness) -> None:
    """A driver dies at each of its changes, and the next one does the rest."""
    die_at, has_died = 0, True
    while has_died:
        harness = new_lake()
        store = WatchedStore(harness.store, die_at)
        with suppress(DiedError, CompactorError):
            drive(harness, store)
        has_died, die_at = store.has_died, die_at + 1
        harness.run_once()
        check(harness)
    assert die_at > 3 * len(CrashPoint)


def test_table() -> None:
    """A manifest whose files a table lists leaves the rest in the same way."""
    harness = Harness(table={})
    harness.task_bytes = 0
    deliver(harness, 3)
    harness.run_once()
    assert [read_by(harness, each) for each in IDS] == [[f"/w/raw/m1-{number}.ndjson"] for number in range(3)]
    assert harness.verification().discrepancies == []
    assert harness.waiting() == []


def test_planned(lake: Harness) -> None:
    """No plan takes a deferred file again, however late: every line is there once."""
    for number in range(3):
        lake.file(f"{DAY}-{number}.ndjson", LINES % number)
    assert plan(lake) == 3
    lake.runner().run(lake.waiting())
    for _ in range(3):
        lake.clock.advance(LEASE_SECONDS + 1)
        assert plan(lake) == 0
        lake.runner().run(lake.waiting())
    lake.check_exact()
    assert rows_of(lake).total() == 3


def test_beside_a_missing_file(lake: Harness) -> None:
    """An operator's redrive takes what is quarantined, not what was deferred."""
    files = [lake.file(f"{number}.ndjson", LINES % number) for number in range(3)]
    lake.put_manifest("m1.json", lake.manifest("m1", files).to_json())
    lake.store.delete([files[0].uri])
    lake.run_once()
    assert [read_by(lake, each) for each in IDS[:2]] == [[files[1].uri], [files[2].uri]]
    lake.store.put(files[0].uri, LINES % 0)
    assert [each.counts for each in redrive(lake, "files").redriven] == [{"missing": 1}]
    lake.run_once()
    lake.check_exact()


def test_most(lake: Harness) -> None:
    """So many manifests follow one; what is left is quarantined, and an operator's redrives read one file each."""
    deliver(lake, MOST_FOLLOWING + 3)
    report = lake.run_once()
    assert report.committed == 1 + MOST_FOLLOWING
    assert report.quarantined_files == 2
    assert {each.status for each in lake.verification().open_files} == {"over_budget"}
    for _ in range(2):
        [redriven] = redrive(lake, "files").redriven
        lake.run_once()
    assert redriven.manifest_id == f"m1-r{MOST_FOLLOWING + 2}"
    lake.check_exact()
    assert lake.verification().open_files == []


@pytest.mark.parametrize(
    ("manifest_id", "files", "expected"),
    [
        ("m", 1, True),
        ("m", MOST_FOLLOWING_FILES, True),
        ("m", MOST_FOLLOWING_FILES + 1, False),
        ("m-r3", MOST_FOLLOWING_FILES // 4, True),
        ("m-r3", MOST_FOLLOWING_FILES // 4 + 1, False),
        ("m" * 200, 1, True),
        ("m" * 200 + "-r15", 1, True),
        ("m-r16", 1, False),
        ("m" * 200 + "-dup-0123456789ab", 1, True),
    ],
)
def test_bounds(lake: Harness, manifest_id: str, files: int, expected: bool) -> None:
    """Few manifests follow one, fewer if it names many files, and none whose id would be too long."""
    manifest = lake.manifest(manifest_id, [ManifestFile(uri="/w/raw/x")] * files)
    assert may_be_followed(manifest) is expected


def test_an_id_that_is_taken(lake: Harness) -> None:
    """A manifest from elsewhere under the next id of the lineage stays what it is: the one after it follows."""
    other = lake.manifest("m1-r1", [lake.file("other.ndjson", LINES % 7)])
    lake.put_manifest("m1-r1.json", other.to_json())
    lake.run_once()
    deliver(lake, 3)
    lake.run_once()
    assert read_by(lake, "m1-r1") == ["/w/raw/other.ndjson"]
    assert [read_by(lake, each) for each in ("m1", "m1-r2", "m1-r3")] == [
        [f"/w/raw/m1-{number}.ndjson"] for number in range(3)
    ]
    lake.check_exact()


def test_rebuild(lake: Harness) -> None:
    """A rebuild reads every file that the manifest has rows of, and none of those that it left."""
    lake.task_bytes = 2 * len(LINES % 0)  # the first two files: a file with rejects is read twice
    deliver(lake, 4)
    lake.run_once()
    assert read_by(lake, "m1") == ["/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"]
    lake.store.delete([file.final for file in lake.commit("m1").outputs])
    lake.task_bytes = 0
    assert [each.manifest_id for each in rebuild(lake).rebuilt] == ["m1"]
    lake.run_once()
    lake.check_exact()


def test_trace(lake: Harness) -> None:
    """A trace of a deferred file leads to the manifest that has its rows."""
    deliver(lake, 3)
    lake.run_once()
    app = lake.app()
    found = operating.tracer(app).trace("/w/raw/m1-2.ndjson", days=31)
    assert (found.state, found.manifest_id, found.rows) == (TraceState.DONE, "m1-r2", 1)
    assert not found.needs_operator


def test_the_next_manifest_is_lost(lake: Harness) -> None:
    """A redrive writes it again from the record, and every line is there once."""
    deliver(lake, 2)
    lake.runner().run(lake.waiting())
    lake.store.delete(lake.waiting())
    assert redrive(lake, "files").healed == ("m1-r1",)
    lake.run_once()
    lake.check_exact()

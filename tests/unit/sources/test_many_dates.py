"""Many dates, and wrong ones: they cost a plan or a builder no more than their number, and delay no other date."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import pytest

from compactor.core.crash_points import PlanCrashPoint
from compactor.core.documents import manifest_parsing
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.inputs.dates import EARLIEST_DATE
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.trace.trace import TraceState
from compactor.sources import packing as packing_module
from compactor.sources.candidates import Candidate
from compactor.sources.claiming import part_key
from compactor.sources.events.builder import BUILD_SECONDS
from compactor.sources.input_files import FileScope
from compactor.sources.packing import Packing
from compactor.wiring import finding, operating, planning
from tests.support.building import MIB, build, new_harness, parts_of, pending, put, seal
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, Harness
from tests.support.logged import events_logged
from tests.support.memory_store import MemoryClaims

ROW = b'{"id": "1"}\n'
DAYS = [(date(2025, 1, 1) + timedelta(days=number)).isoformat() for number in range(60)]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
WRONG = ["9999-12-31", "1999-12-31", "0001-01-01"]


class SlowStore(FaultyStore):
    """A store whose every new object takes a moment, and that counts how many are written at once."""

    at_once = most_at_once = 0

    def create(self, uri: str, data: bytes) -> bool:
        with self._one_more():
            return super().create(uri, data)

    @contextmanager
    def _one_more(self) -> Iterator[None]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.at_once, self.most_at_once)
        time.sleep(0.01)
        yield
        with self._lock:
            self.at_once -= 1


def test_a_plan_reads_each_waiting_manifest_once() -> None:
    """However many dates the files have: neither earlier manifests nor those of the plan itself are read for each."""
    harness = Harness()
    for day in DAYS:
        harness.file(f"{day}-a.ndjson", ROW)
    for number in range(3):
        harness.deliver(f"by-hand-{number}", ROW)
    store = SlowStore(harness.store)
    plan = finding.plan(harness.app(store=store), "/w/raw")
    assert [manifest.date for manifest in plan.manifests] == DAYS
    assert plan.planned_before == 3
    # Three manifests, and whether each is accepted.
    assert store.calls["read"] == 6
    assert store.most_at_once > 4
    again = SlowStore(harness.store)
    assert finding.plan(harness.app(store=again), "/w/raw").planned_before == 63
    # What each claim's manifest was accepted as, and each waiting manifest with what became of it.
    assert again.calls["read"] <= 5 * len(DAYS) + 16


def test_the_bound_on_manifests() -> None:
    """A plan writes the manifests of the earliest days, says how much is left at most, and the next plan goes on."""
    harness = Harness()
    for day in DAYS[:5]:
        harness.file(f"{day}-a.ndjson", ROW)
    for days, left in ((DAYS[:2], 3), (DAYS[2:4], 1), (DAYS[4:5], 0)):
        shown = finding.plan(harness.app(), "/w/raw", limit=2, dry_run=True)
        plan = finding.plan(harness.app(), "/w/raw", limit=2)
        assert (plan.left_manifests, plan.left_files) == (shown.left_manifests, shown.left_files) == (left, left)
        assert [each.date for each in shown.manifests] == [each.date for each in plan.manifests] == days
    harness.run_once()
    harness.check_exact()


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_date_is_the_day_of_arrival_for_a_plan(wrong: str) -> None:
    """The plan says so, the rows are in that day, and every command finds the file there."""
    harness = Harness()
    file = harness.file(f"{wrong}-a.ndjson", ROW)
    harness.file(f"{DAY}-b.ndjson", ROW)
    shown = finding.plan(harness.app(), "/w/raw", dry_run=True)
    assert (shown.misdated, shown.first_misdated) == (1, file.uri)
    assert finding.plan(harness.app(), "/w/raw", FileScope(date=DAY), dry_run=True).skipped == {}
    with events_logged("files.misdated") as events:
        plan = finding.plan(harness.app(), "/w/raw")
    assert [manifest.date for manifest in plan.manifests] == [DAY]
    assert [(event["files"], event["first"]) for event in events] == [(1, file.uri)]
    harness.run_once()
    harness.check_exact()
    harness.claims = MemoryClaims()
    assert operating.tracer(harness.app()).trace(file.uri, days=1).state is TraceState.DONE
    assert finding.plan(harness.app(), "/w/raw").planned_before == 2


@pytest.mark.parametrize("is_wider", [False, True])
def test_another_window_plans_no_file_again(monkeypatch: pytest.MonkeyPatch, is_wider: bool) -> None:
    """After a release has changed the window and claims have expired, a file is found under its earlier date."""
    harness = Harness()
    file = harness.file("2024-05-05-a.ndjson", ROW)
    harness.file("2026-01-03-b.ndjson", ROW)  # the newest date, which a trace would otherwise try second
    before, after = ("2025-01-01", EARLIEST_DATE) if is_wider else (EARLIEST_DATE, "2025-01-01")
    monkeypatch.setattr("compactor.core.inputs.dates.EARLIEST_DATE", before)
    plan = finding.plan(harness.app(), "/w/raw")
    assert [manifest.date for manifest in plan.manifests] == [DAY if is_wider else "2024-05-05", "2026-01-03"]
    harness.run_once()
    harness.claims = MemoryClaims()
    monkeypatch.setattr("compactor.core.inputs.dates.EARLIEST_DATE", after)
    again = finding.plan(harness.app(), "/w/raw")
    assert (again.manifests, again.planned_before) == ([], 2)
    assert operating.tracer(harness.app()).trace(file.uri, days=2).state is TraceState.DONE
    harness.check_exact()


def test_a_wrong_date_is_redriven_into_the_day_of_arrival() -> None:
    """A quarantined file of a wrong date is redriven like any other, and its rows are there once."""
    harness = Harness()
    file = harness.file("9999-12-31-a.ndjson", ROW)
    harness.file(f"{DAY}-b.ndjson", ROW)
    closed = FaultyStore(harness.store)
    closed.deny(file.uri)
    finding.plan(harness.app(), "/w/raw")
    harness.run_once(store=closed)
    harness.claims = MemoryClaims()
    app = harness.app()
    report = operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")))
    assert report.refused == ()
    harness.run_once()
    harness.check_exact()
    assert {key.date for key in harness.ledger.manifests()} == {DAY}


def test_a_builder_takes_a_wrong_date_for_the_day_of_arrival() -> None:
    """Announced files and planned ones get the same date, and the builder counts the wrong ones."""
    harness = new_harness()
    with events_logged("files.misdated") as events:
        report = build(harness, *(put(f"{wrong}-a.ndjson") for wrong in WRONG), put("2025-12-30-b.ndjson"))
    plan = report.plans[""]
    assert sorted(part.date for part in plan.parts) == ["2025-12-30", DAY]
    assert plan.misdated == 3
    assert [event["files"] for event in events] == [3]


def test_a_foreign_manifest_of_a_wrong_date() -> None:
    """Its rows are in the day of its arrival, and the log says which date it gave."""
    harness = Harness()
    manifest = harness.manifest("m1", [harness.file("a.ndjson", ROW)]).model_copy(update={"date": "9999-12-31"})
    harness.put_manifest("m1.json", manifest.to_json())
    with events_logged("manifest.misdated") as events:
        harness.run_once()
    assert harness.commit("m1").date == DAY
    assert [(event["ignored_date"], event["date"]) for event in events] == [("9999-12-31", DAY)]
    harness.check_exact()


def test_a_builder_writes_many_dates_at_once() -> None:
    """A batch of many dates makes its calls side by side, and so does the sealer."""
    harness = new_harness()
    bodies = {day: put(f"{day}-a.ndjson", 1) for day in DAYS}
    store = SlowStore(harness.store)
    report = planning.builder(parts_of(harness, store)).build(bodies)
    assert (len(report.plans[""].parts), report.failed) == (len(DAYS), {})
    assert store.most_at_once > 4
    harness.clock.advance(60)
    store = SlowStore(harness.store)
    sealed = planning.sealer(parts_of(harness, store)).seal()
    assert sorted(manifest.date for manifest in sealed.manifests) == DAYS
    assert (sealed.sealed_parts, pending(harness)) == (len(DAYS), [])
    assert store.most_at_once > 4


def test_no_manifest_is_longer_than_intake_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny files with the longest names, whose characters JSON escapes, are cut into manifests that can be read."""
    for module in (packing_module, manifest_parsing):
        monkeypatch.setattr(module, "MAX_MANIFEST_BYTES", 4 * MIB)
    names = (f"s3://lake/raw/{number:08d}" + "\x01" * 1_000 for number in range(2_000))
    files = [ManifestFile(uri=name, size_bytes=1, etag="e" * 256) for name in names]
    parts = [files[:250], files[250:740]]
    candidates = [
        [Candidate.of_file(DAY, file) for file in files],
        [Candidate(part_key(str(number)), DAY, part) for number, part in enumerate(parts)],
    ]
    for some in candidates:
        packing = Packing(DAY, 10 * MIB)
        written = [tuple(group.files) for group in [*packing.add(some), *packing.end()]]
        assert sum(map(len, written)) == sum(len(each.files) for each in some)
        for named in written:
            data = Manifest(manifest_id="m", date=DAY, created_at=NOW, files=named).to_json()
            found = parse_manifest(data, uri="/m.json", modified_at=NOW, allowed_prefixes=["s3://lake/raw"])
            assert found.files == named


def test_tiny_dates_do_not_starve_the_others() -> None:
    """A call that runs out of time has built the largest groups; the messages of the others come again."""
    harness = new_harness()
    bodies = {day: put(f"{day}-a.ndjson", 1) for day in DAYS}
    bodies |= {f"large-{number}": put(f"{DAY}-{number}.ndjson", 5 * MIB) for number in range(4)}
    lock, begun = threading.Lock(), 0

    def take_long(step: PlanCrashPoint, _manifest_id: str) -> None:
        nonlocal begun
        with lock:
            begun += step is PlanCrashPoint.CLAIMED
            if begun == 2:
                harness.clock.advance(BUILD_SECONDS + 1)
                begun += 1

    with events_logged("groups.left") as events:
        report = planning.builder(parts_of(harness, on_crash_point=take_long)).build(bodies)
    plan = report.plans[""]
    assert [each.files for each in plan.manifests] == [2, 2]
    assert len(report.failed) == plan.left_manifests > 20
    assert set(report.failed) <= set(DAYS)
    assert [event["groups"] for event in events] == [plan.left_manifests]
    again = planning.builder(parts_of(harness)).build({day: bodies[day] for day in report.failed})
    assert again.failed == {}
    seal(harness, after_seconds=60)
    assert {each.date for each in again.plans[""].parts} == {*report.failed}

"""The job maintains and merges its table by itself, at the intervals of the settings."""

import logging

import pytest

from compactor.upkeep.tasks import CHECK_SECONDS, Tasks
from compactor.wiring import streaming, table_sink
from compactor.wiring.opening import table_catalog
from tests.support.fakes import ListSource
from tests.support.harness import GOOD, Harness, sink_of
from tests.unit.ops.table.test_merger import check, live, rows

HOUR = 3600.0


def filled(**table: object) -> Harness:
    """Four manifests in a table, each of one small file."""
    made = Harness(table=table)
    for name in ("m1", "m2", "m3", "m4"):
        made.deliver(name, GOOD)
    made.run_once()
    return made


def later(harness: Harness, tasks: Tasks, seconds: float) -> None:
    """Let time pass, and let what is due be done."""
    harness.clock.advance(seconds)
    tasks.step()
    tasks.wait()


def begun(harness: Harness) -> Tasks:
    """The tasks of a run that has just begun, and has had its first look."""
    made = Tasks(harness.app().state, table_sink.table_tasks(harness.app(), lambda: True))
    made.step()
    later(harness, made, CHECK_SECONDS)
    return made


def test_merges_and_upkeep_at_intervals(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at its own; a restart does not change when the next one is."""
    monkeypatch.setattr(table_sink, "KEEP_SNAPSHOTS", 1)
    harness = filled(merge_hours=2, maintain_hours=24)
    before = rows(harness)
    caplog.set_level(logging.INFO)
    upkeep = begun(harness)
    later(harness, upkeep, HOUR)
    assert len(live(harness)) == 4
    upkeep = begun(harness)
    later(harness, upkeep, HOUR)
    assert len(live(harness)) == 1
    check(harness, before)
    sink_of(harness).rewrite()
    harness.clock.advance(24 * HOUR)
    later(harness, begun(harness), CHECK_SECONDS)
    found = table_catalog(harness.app()).history()
    assert found is not None
    assert len(found[1].snapshots) == 1
    check(harness, before)
    assert "table.upkeep_done" in caplog.text


def test_upkeep_alone_by_default() -> None:
    """Once a day, without merges; and nothing without a table."""
    harness = filled()
    later(harness, begun(harness), 10_000 * HOUR)
    assert len(live(harness)) == 4
    tasks = table_sink.table_tasks(harness.app(), lambda: True)
    assert [(each.name, each.every_seconds) for each in tasks] == [("table maintain", 24 * HOUR)]
    assert table_sink.table_tasks(Harness().app(), lambda: True) == []


def test_beside_the_work_of_a_run() -> None:
    """A run without end does it while its stream waits; and a run that is to end does none."""
    harness = filled(merge_hours=1)
    waits = 0

    def on_wait() -> None:
        nonlocal waits
        waits += 1
        harness.clock.advance(HOUR)
        job.tasks.wait()
        if len(live(harness)) == 1 or waits > 50:
            job.stop()

    stream = ListSource(harness.store, harness.layout.manifests_folder, on_wait=on_wait)
    job = streaming.service_on(harness.app(), harness.engine(), stream)
    before = rows(harness)
    job.run(once=False)
    assert len(live(harness)) == 1
    check(harness, before)

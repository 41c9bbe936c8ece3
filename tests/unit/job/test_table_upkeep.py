"""The job maintains and merges its table by itself, at the intervals of the settings."""

import logging
from collections.abc import Mapping
from datetime import timedelta

import pytest

from compactor.core.errors import CompactorError
from compactor.ledger.housekeeping import failing_tasks
from compactor.upkeep.table_upkeep import CHECK_SECONDS, RETRY_SECONDS, TableUpkeep, UpkeepTask
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


def later(harness: Harness, upkeep: TableUpkeep, seconds: float) -> None:
    """Let time pass, and let what is due be done."""
    harness.clock.advance(seconds)
    upkeep.step()
    upkeep.wait()


def begun(harness: Harness) -> TableUpkeep:
    """The upkeep of a run that has just begun, and has had its first look."""
    made = harness.app().table_upkeep(None)
    assert made is not None
    made.step()
    later(harness, made, CHECK_SECONDS)
    return made


def test_merges_and_upkeep_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    """Each at its own; a restart does not change when the next one is."""
    harness = filled(merge_hours=2, maintain_hours=24, keep_snapshots=1)
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
    found = harness.app().table_catalog.history()
    assert found is not None
    assert len(found[1].snapshots) == 1
    check(harness, before)
    assert "table.upkeep_done" in caplog.text


def test_none_by_default() -> None:
    """Nor without a table."""
    harness = filled()
    later(harness, begun(harness), 10_000 * HOUR)
    assert len(live(harness)) == 4
    assert Harness().app().table_upkeep(None) is None


def test_another_shard_leads() -> None:
    """This run leaves it to that one, and takes over once that one is gone."""
    harness, leads = filled(merge_hours=1), False
    upkeep = harness.app().table_upkeep(lambda: leads)
    assert upkeep is not None
    upkeep.step()
    later(harness, upkeep, CHECK_SECONDS)
    later(harness, upkeep, 2 * HOUR)
    assert len(live(harness)) == 4
    leads = True
    later(harness, upkeep, CHECK_SECONDS)
    assert len(live(harness)) == 1


def test_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """Is logged, ends nothing, and is over once it is over: after an hour it is tried again, and the rest goes on."""
    harness, calls = filled(), list[str]()

    def fail() -> Mapping[str, int]:
        calls.append("failing")
        raise CompactorError("no")

    def work() -> Mapping[str, int]:
        calls.append("working")
        return {}

    tasks = [UpkeepTask("maintain", 8 * HOUR, fail), UpkeepTask("merge", 8 * HOUR, work)]
    upkeep = TableUpkeep(state=harness.app().state, tasks=tasks)
    upkeep.step()
    later(harness, upkeep, CHECK_SECONDS)
    later(harness, upkeep, 8 * HOUR)
    later(harness, upkeep, CHECK_SECONDS)
    assert calls == ["failing", "working"]
    later(harness, upkeep, RETRY_SECONDS)
    assert calls == ["failing", "working", "failing"]
    assert "table.upkeep_failed" in caplog.text
    [told] = failing_tasks(harness.app().state, ("maintain", "merge"))
    assert (told.name, told.error) == ("table maintain", "no")
    assert told.failed_at - told.failing_since >= timedelta(seconds=RETRY_SECONDS)


def test_beside_the_work_of_a_run() -> None:
    """A run without end does it while its stream waits; and a run that is to end does none."""
    harness = filled(merge_hours=1)
    waits = 0

    def on_wait() -> None:
        nonlocal waits
        waits += 1
        harness.clock.advance(HOUR)
        if job.upkeep is not None:
            job.upkeep.wait()
        if len(live(harness)) == 1 or waits > 50:
            job.stop()

    stream = ListSource(harness.store, harness.layout.manifests_folder, on_wait=on_wait)
    job = harness.app().service_on(harness.engine(), stream)
    before = rows(harness)
    job.run(once=False)
    assert len(live(harness)) == 1
    check(harness, before)

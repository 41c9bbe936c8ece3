"""A rebuild that is held up: the cleaner of a job comes meanwhile, or a driver that is late with the first commit."""

from collections import Counter  # noqa: TC003 - of local annotations
from contextlib import suppress

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.errors import ObjectNotFound
from compactor.upkeep.cleaner import ORPHAN_AGE_SECONDS, CleaningReport, Kind
from compactor.wiring import operating
from tests.support.fakes import PlainEngine
from tests.support.harness import FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import WatchedStore, rebuild, visible_rows

LATER = "a rebuild of it is undecided"


def damaged() -> Harness:
    """A done manifest that has lost its files."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    commit = harness.commit("m1")
    harness.store.delete([file.final for file in (*commit.outputs, *commit.rejects)])
    return harness


@pytest.mark.parametrize("held_up_at", [CrashPoint.CONVERTED, CrashPoint.OPENED])
def test_a_rebuild_that_is_held_up_for_a_day_keeps_what_it_staged(held_up_at: CrashPoint) -> None:
    """The cleaner of a job comes while a rebuild sleeps. Then the rebuild goes on, decides, and publishes every row."""
    harness = damaged()
    swept: list[CleaningReport] = []

    def on_crash_point(point: CrashPoint, _manifest_id: str) -> None:
        if point == held_up_at:
            harness.clock.advance(ORPHAN_AGE_SECONDS + 1)
            swept.append(operating.cleaner(harness.app()).sweep())

    report = rebuild(harness, "m1", on_crash_point=on_crash_point)
    assert len(report.rebuilt) == 1, report
    assert swept[0].removed[Kind.STAGED] == 0
    assert swept[0].kept == {LATER: 1}
    harness.check_exact()


def test_a_later_rebuild_clears_the_staging_of_one_that_died() -> None:
    """What the cleaner keeps does not stay for ever: the next rebuild of the manifest deletes it."""
    harness = damaged()
    layout = harness.layout
    harness.store.put(f"{layout.staging_of_attempt('m1', 7, 2)}part-0.parquet", b"of a rebuild that died")
    harness.clock.advance(ORPHAN_AGE_SECONDS + 1)
    assert operating.cleaner(harness.app()).sweep().kept == {LATER: 1}
    assert len(rebuild(harness, "m1").rebuilt) == 1
    assert list(harness.store.list(layout.staging_of("m1"))) == []
    harness.check_exact()


@pytest.mark.parametrize("step", [CrashPoint.CONVERTED, CrashPoint.OPENED, CrashPoint.DECIDED])
@pytest.mark.parametrize("rows_per_file", [1, 3])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_late_driver_doubles_no_row_of_a_rebuild(step: CrashPoint, rows_per_file: int, lost: int) -> None:
    """A driver copies the files of the first commit once more, from staging that was not cleaned up so far."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD, FLAWED)
    with suppress(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DONE)).run([uri])
    first, before = harness.commit("m1"), visible_rows(harness)
    harness.store.delete([first.outputs[lost].final])

    def on_crash_point(point: CrashPoint, _manifest_id: str) -> None:
        if point == step:
            for file in first.outputs:
                with suppress(ObjectNotFound):
                    harness.store.copy(file.staged, file.final)

    seen: list[Counter[str]] = []
    store = WatchedStore(harness.store, on_change=lambda: seen.append(visible_rows(harness) - before))
    engine = PlainEngine(
        harness.store, metadata_columns=harness.settings.schema.metadata_columns, rows_per_file=rows_per_file
    )
    rebuild(harness, "m1", store=store, engine=engine, on_crash_point=on_crash_point)
    assert [doubled for doubled in seen if doubled] == []
    harness.run_once()
    harness.check_exact()


def test_nothing_of_an_earlier_commit_can_be_copied_any_more() -> None:
    """A driver is late and stages the first commit once more. It is in vain."""
    harness = damaged()
    late = f"{harness.layout.staging_of_attempt('m1', 1)}part-0.parquet"
    left: list[bool] = []

    def on_crash_point(point: CrashPoint, _manifest_id: str) -> None:
        if point is CrashPoint.DECIDED:
            harness.store.put(late, b"rows of the first commit")

    class Store(WatchedStore):
        def copy(self, source: str, target: str) -> None:
            left.append(harness.store.stat(late) is not None)
            super().copy(source, target)

    rebuild(harness, "m1", store=Store(harness.store), on_crash_point=on_crash_point)
    assert left
    assert not any(left)
    harness.check_exact()

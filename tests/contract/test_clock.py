"""What every clock promises."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor.adapters.local.machine import SystemClock
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()], ids=["system", "manual"])
def test_time_has_its_zone(clock: Any) -> None:
    """The time has the zone UTC."""
    assert clock.now().utcoffset() == timedelta(0)


def test_the_system_clock_tells_the_time_of_day() -> None:
    """The system's clock is the one of this machine."""
    assert abs(SystemClock().now() - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_manual_clock_moves_only_when_told() -> None:
    """A manual clock stands still, goes where it is set, and moves on by what it is told."""
    clock = ManualClock()
    assert clock.now() == clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    moment = datetime(2026, 5, 1, 10, tzinfo=UTC)
    clock.set(moment)
    clock.advance(60)
    assert clock.now() == moment + timedelta(seconds=60)


def test_objects_in_memory_bear_the_time_of_their_clock() -> None:
    """A test can age objects in memory by moving their clock."""
    clock = ManualClock()
    store = MemoryStore(clock)
    store.put("/a", b"")
    clock.advance(60)
    store.put("/b", b"")
    assert [info.modified_at.minute for info in store.list("/")] == [0, 1]


def test_metrics_in_memory_are_kept_in_order() -> None:
    """Everything emitted is kept as it was at that moment."""
    metrics, values = MemoryMetrics(), {"RecordsIn": 1.0}
    metrics.emit(values)
    values["RecordsIn"] = 2.0
    metrics.emit(values)
    assert metrics.emitted == [{"RecordsIn": 1.0}, {"RecordsIn": 2.0}]

"""What is sent where only alarms need metrics."""

import pytest

from compactor.adapters.local.machine import SystemClock
from compactor.adapters.metrics_sinks import AlarmMetrics, LogMetrics, metrics_sink
from compactor.core.distributions import distribution_of
from compactor.settings.settings import parse_settings
from tests.support.memory_store import MemoryMetrics

ALL = {"Heartbeat": 0, "ManifestsStuck": 0, "ManifestsDeadLettered": 2, "RecordsIn": 5, "BytesIn": 7, "Unheard": 1}


def test_alarms_get_what_they_need() -> None:
    """A metric whose absence rings is sent even if it is zero, others that are not zero, and none without an alarm."""
    sink = MemoryMetrics()
    AlarmMetrics(sink).emit({**ALL, "ArrivalToVisibleSeconds": distribution_of([1.0])})
    AlarmMetrics(sink).emit({"BytesIn": 1})
    assert sink.emitted == [{"Heartbeat": 0, "ManifestsDeadLettered": 2, "RecordsIn": 5}]
    assert AlarmMetrics(sink).flush(1)


@pytest.mark.parametrize(("detail", "kind"), [("all", LogMetrics), ("alarms", AlarmMetrics)])
def test_the_settings_decide(detail: str, kind: type[object]) -> None:
    """`metrics.detail` decides, and all are sent by default."""
    given = {"paths": {"output": "/w/output", "state": "/w/state", "manifests": "/w/manifests"}}
    settings = parse_settings({**given, "input": {"allowed_prefixes": ["/w/raw"]}, "metrics": {"detail": detail}})
    assert isinstance(metrics_sink(settings, SystemClock()), kind)

"""New columns are bounded by manifest and by day: what gets no column is rescued, counted and told."""

from datetime import timedelta

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.control.diagnosis.health import Condition
from compactor.engines.engine import Engine
from compactor.schema import schema_of_settings
from compactor.wiring import engines, operating
from tests.support.engines import NATIVE, engines_without_spark
from tests.support.harness import Harness
from tests.support.logged import events_logged


@pytest.fixture(params=engines_without_spark())
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def engine(harness: Harness, name: str) -> Engine:
    app = harness.app()
    return engines.native_engine(app, ThreadBinWorkers(app.store)) if name == NATIVE else harness.engine()


def metric(harness: Harness, name: str) -> list[object]:
    return [each[name] for each in harness.metrics.emitted if name in each]


def record(*keys: str) -> bytes:
    return b"{%s}\n" % b",".join(b'"%s":"%s"' % (key.encode(), key.encode()) for key in keys)


def compact(harness: Harness, engine_name: str, manifest_id: str, *keys: str) -> list[str | None]:
    """Compact a manifest with one record of these keys; returns the keys with a column."""
    harness.deliver(manifest_id, record(*keys))
    assert harness.run_once(engine=engine(harness, engine_name)).committed == 1
    app = harness.app()
    assert operating.verifier(app, deep=True).verify_all().discrepancies == []
    return [column.key for column in app.registry.latest().columns]


def test_a_manifest_and_a_day_add_so_many_columns(engine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first manifest has the limit of the day; the others add two each and three a day; all values stay."""
    monkeypatch.setattr(schema_of_settings, "MAX_NEW_COLUMNS_PER_DAY", 3)
    harness = Harness()
    first = ["a", "b", "c"]
    assert compact(harness, engine_name, "m1", *first, "d") == [*first, None]
    assert harness.commit("m1").refused_keys == 1
    harness.clock.advance(timedelta(days=1).total_seconds())
    first = [*first, None]
    assert compact(harness, engine_name, "m2", "a", "k1", "k2", "k3", "k4") == [*first, "k1", "k2"]
    assert (harness.commit("m2").refused_keys, metric(harness, "ColumnsRefused")[-1]) == (2, 2)
    assert compact(harness, engine_name, "m3", "k3", "k4") == [*first, "k1", "k2", "k3"]
    assert compact(harness, engine_name, "m4", "k4")[-1] == "k3"
    assert harness.commit("m4").redone_bins == 0
    harness.clock.advance(timedelta(days=1).total_seconds())
    assert compact(harness, engine_name, "m5", "k4", "k5")[-2:] == ["k4", "k5"]
    assert harness.commit("m5").refused_keys == 0


def test_no_new_columns_at_all(engine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a day that has its columns the table stays as it is."""
    monkeypatch.setattr(schema_of_settings, "MAX_NEW_COLUMNS_PER_DAY", 1)
    harness = Harness()
    assert compact(harness, engine_name, "m1", "a") == ["a"]
    assert compact(harness, engine_name, "m2", "a", "b") == ["a", None]


def test_columns_that_are_nearly_full_are_told(engine_name: str) -> None:
    """By a log event, a metric, the control plane's source and `status`; nine of ten are enough."""
    harness = Harness(schema={"max_columns": 10})
    compact(harness, engine_name, "m1", *"abcdefgh")
    assert operating.status_reader(harness.app()).read().state.condition is not Condition.COLUMNS_NEARLY_FULL
    with events_logged("columns.nearly_full") as full, events_logged("columns.refused") as refused:
        compact(harness, engine_name, "m2", "i", "x" * 300)
    assert [(each["columns"], each["max_columns"]) for each in full] == [(9, 10)]
    assert [(each["manifest_id"], each["keys"], each["new_columns"]) for each in refused] == [("m2", 1, 2)]
    assert metric(harness, "ColumnsUsedPercent") == [80, 90]
    latest = harness.ledger.recent()[-1]
    assert (latest.columns, latest.max_columns) == (9, 10)
    state = operating.status_reader(harness.app()).read().state
    assert state.reason.startswith("9 of 10 columns are used")

"""Metrics: only names of the catalogue, and figures that say what happened, once."""

from dataclasses import replace

import pytest

from compactor.adapters.metrics_sinks import DroppedMetrics
from compactor.metrics import CATALOGUE, batch_metrics
from tests.scenes import FLAWED, GOOD, World

TARGET = 1000


def test_catalogue() -> None:
    """Every metric has a meaning and an advice, and is filed under its name."""
    assert all(metric.name == name and metric.meaning and metric.advice for name, metric in CATALOGUE.items())


def test_figures_of_a_batch() -> None:
    """Lines, bytes, files, columns and attempts of a batch add up."""
    world = World()
    uris = [world.deliver("m1", GOOD, FLAWED), world.deliver("m2", GOOD), world.put_manifest("bad.json", b"{")]
    world.store.delete(["/w/raw/m2-0.ndjson"])
    results = world.runner().run(uris).results
    values = batch_metrics(results, failed=1, stuck=2, seconds=2.0, target_file_bytes=TARGET)
    assert set(values) <= set(CATALOGUE)
    output_bytes = sum(info.size_bytes for info in world.store.list("/w/output/"))
    expected = {
        "ManifestsCommitted": 2,
        "ManifestsDeadLettered": 1,
        "BatchDurationSeconds": 2.0,
        "RecordsIn": 6,
        "RecordsOut": 4,
        "RecordsRejected": 2,
        "FilesSetAside": 1,
        "BytesIn": len(GOOD) + len(FLAWED),
        "InputBytesPerSecond": (len(GOOD) + len(FLAWED)) / 2,
        "BytesOut": output_bytes,
        "OutputFiles": 2,
        "NewColumns": 3,
        "Attempts": 3,
        "Heartbeat": 1,
    }
    assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(("target", "rate"), [(1, 0.0), (10_000_000, None)])
def test_hit_rate(target: int, rate: float | None) -> None:
    """The hit rate is told only where files could have been right-sized."""
    world = World()
    results = world.runner().run([world.deliver("m1", GOOD)]).results
    values = batch_metrics(results, failed=0, stuck=0, seconds=0.0, target_file_bytes=target)
    assert values.get("OutputFileSizeHitRate") == rate
    assert "InputBytesPerSecond" not in values


def test_repeats_count_nothing() -> None:
    """What was done before is not counted again, neither commits nor dead letters."""
    world = World()
    uris = [world.deliver("m1", GOOD), world.put_manifest("bad.json", b"{")]
    world.runner().run(uris)
    world.put_manifest("m1.json", world.store.read("/w/state/archive/2026-01-02/m1.json"))
    world.put_manifest("bad.json", b"{")
    results = world.runner().run(uris).results
    assert len(results) == 2
    values = batch_metrics(results, failed=0, stuck=0, seconds=1.0, target_file_bytes=TARGET)
    assert {name for name, value in values.items() if value} == {"BatchDurationSeconds", "Heartbeat"}


def test_rolled_forward_counts_once() -> None:
    """A commit that an earlier driver decided, and did not live to count, is counted when it becomes visible."""
    world = World()
    [result] = world.runner().run([world.deliver("m1", GOOD)]).results
    values = batch_metrics([replace(result, attempts=0)], failed=0, stuck=0, seconds=1.0, target_file_bytes=TARGET)
    assert (values["ManifestsCommitted"], values["RecordsOut"], values["Attempts"]) == (1, 2, 0)


def test_service_emits_from_the_catalogue() -> None:
    """What a run emits is in the catalogue, and one set a batch."""
    world = World()
    world.deliver("m1", GOOD)
    world.run_once()
    [values] = world.metrics.emitted
    assert set(values) <= set(CATALOGUE)
    assert values["ManifestsCommitted"] == 1
    DroppedMetrics().emit(values)

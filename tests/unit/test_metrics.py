"""Metrics: only names of the catalogue, and figures that say what happened, once."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from compactor.adapters.memory import MemoryMetrics
from compactor.adapters.metrics_sinks import DroppedMetrics
from compactor.batch_metrics import batch_metrics
from compactor.compaction import CompactionResult
from compactor.distributions import Distribution
from compactor.engine import Staged, StageRequest
from compactor.errors import AccessError
from compactor.metrics import CATALOGUE
from compactor.metrics_table import with_table
from compactor.service import FLUSH_SECONDS
from tests.scenes import FLAWED, GOOD, DiedError, World
from tests.twins import PlainEngine

METRICS = Path(__file__).parents[2] / "docs" / "reference-metrics.md"
TARGET = 1000


def test_catalogue() -> None:
    """Every metric has a meaning and an advice, and is filed under its name."""
    assert all(metric.name == name and metric.meaning and metric.advice for name, metric in CATALOGUE.items())


def test_the_readme_shows_the_catalogue() -> None:
    """The table in the document is the catalogue, to the letter."""
    document = METRICS.read_text()
    assert with_table(document) == document, "python -m compactor.metrics_table docs/reference-metrics.md"
    with pytest.raises(ValueError, match="expected a line"):
        with_table("no marks")


def test_functions_can_measure() -> None:
    """Catalogue, sinks and costs load neither what converts data nor, before they are needed, the clients of AWS."""
    script = (
        "import sys, compactor.metrics, compactor.measured_cost, compactor.adapters.metrics_sinks;"
        "sys.exit(bool({'pyarrow', 'pyspark', 'boto3'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


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


def test_arrival_to_visible() -> None:
    """Each file that became visible counts the seconds from its event, else from its manifest's creation."""
    world = World()
    early = world.file("early", GOOD)
    world.clock.advance(60)
    late, missing = world.file("late", GOOD), world.file("missing", GOOD)
    world.store.delete([missing.uri])
    untimed = world.file("untimed", FLAWED).model_copy(update={"event_time": None})
    world.clock.advance(30)
    uri = world.put_manifest("m1.json", world.manifest("m1", [early, late, missing, untimed]).to_json())
    world.clock.advance(10)
    results = world.runner().run([uri]).results
    assert latencies(results) == {100: 1, 40: 1, 10: 1}
    world.put_manifest("again.json", world.store.read("/w/state/archive/2026-01-02/m1.json"))
    assert latencies(world.runner().run(world.waiting()).results) is None


def test_arrival_of_a_manifest_that_was_rolled_forward() -> None:
    """What one driver decided and the next one published took until then, for each of its files."""
    world = World()
    uri = world.deliver("m1", GOOD, GOOD)

    def die(step: str, _: str) -> None:
        if step == "decided":
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([uri])
    world.clock.advance(3600)
    assert latencies(world.runner().resume(["m1"]).results) == {3600: 2}


def test_arrivals_of_many_files() -> None:
    """However long they took, a batch tells at most 150 values, and every file counts."""
    world = World()
    files = []
    for number in range(400):
        files.append(world.file(f"f{number}", GOOD).model_copy(update={"event_time": world.clock.now()}))
        world.clock.advance(7)
    files[0] = files[0].model_copy(update={"event_time": world.clock.now() + timedelta(hours=1)})
    uri = world.put_manifest("m1.json", world.manifest("m1", files).to_json())
    counts = latencies(world.runner().run([uri]).results)
    assert counts is not None
    assert (len(counts) <= 150, sum(counts.values()), min(counts)) == (True, 400, 0)


def latencies(results: Sequence[CompactionResult]) -> dict[float, int] | None:
    values = batch_metrics(results, failed=0, stuck=0, seconds=1.0, target_file_bytes=TARGET)
    found = values.get("ArrivalToVisibleSeconds")
    assert found is None or isinstance(found, Distribution)
    return None if found is None else dict(found.counts)


@pytest.mark.parametrize("error", [None, AccessError("denied")], ids=["a good end", "a bad end"])
def test_a_run_ends_with_its_figures_sent(error: Exception | None) -> None:
    """Whatever a run ends with, what it emitted has left the process by then, or a short time has passed."""

    class Waiting(MemoryMetrics):
        def flush(self, timeout_seconds: float) -> bool:
            flushed.append((len(self.emitted), timeout_seconds))
            return False

    class Failing(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            if error is not None:
                raise error
            return super().stage(request)

    flushed: list[tuple[int, float]] = []
    world = World()
    world.metrics = Waiting()
    world.deliver("m1", GOOD)
    with nullcontext() if error is None else pytest.raises(AccessError):
        world.run_once(engine=Failing(world.store))
    assert flushed == [(1 if error is None else 0, FLUSH_SECONDS)]

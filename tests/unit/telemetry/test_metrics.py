"""Metrics: only names of the catalogue, and figures that say what happened, once."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from compactor.adapters.metrics_sinks import DroppedMetrics
from compactor.core.distributions import Distribution
from compactor.core.errors import AccessError, StoreUnavailable, StuckError
from compactor.engines.engine import Staged, StageRequest
from compactor.job.report import batch_metrics
from compactor.job.results import Ending, Result, Results
from compactor.job.service import FLUSH_SECONDS
from compactor.telemetry.metrics import CATALOGUE
from tests.support.fakes import PlainEngine
from tests.support.harness import FLAWED, GOOD, DiedError, Harness
from tests.support.memory_store import MemoryMetrics
from tools.events_table import with_tables

TARGET = 1000


def test_catalogue() -> None:
    """Every metric has a name without spaces, a meaning and an advice."""
    assert all(name.isalpha() and metric.meaning and metric.advice for name, metric in CATALOGUE.items())


def test_a_document_without_the_marks_of_the_table_is_refused() -> None:
    """The generator does not guess where the table belongs."""
    with pytest.raises(ValueError, match="expected a line"):
        with_tables("no marks")


def test_functions_can_measure() -> None:
    """Catalogue, sinks and costs load neither what converts data nor, before they are needed, the clients of AWS."""
    script = (
        "import sys, compactor.telemetry.metrics, compactor.cost.measured_cost, compactor.adapters.metrics_sinks;"
        "sys.exit(bool({'pyarrow', 'pyspark', 'boto3'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_what_was_for_nothing_is_counted_apart() -> None:
    """An attempt that another run forestalled is an attempt, and no commit."""
    result = Result(ending=Ending.ALREADY_DONE, manifest_id="m1", attempts=1, wasted=True)
    values = batch_metrics(Results((result,)), retrying=0, seconds=1.0, target_file_bytes=TARGET)
    assert (values["Attempts"], values["AttemptsWasted"], values["ManifestsCommitted"]) == (1, 1, 0)


def test_figures_of_a_batch() -> None:
    """Lines, bytes, files, columns and attempts of a batch add up."""
    harness = Harness()
    uris = [harness.deliver("m1", GOOD, FLAWED), harness.deliver("m2", GOOD), harness.put_manifest("bad.json", b"{")]
    harness.store.delete(["/w/raw/m2-0.ndjson"])
    uris.append(harness.deliver("m3", GOOD))
    harness.store.put("/w/raw/m3-0.ndjson", FLAWED)  # changed, which no operator need fix
    results = harness.runner().run(uris)
    others = [Result(ending=Ending.FAILED, manifest_id="m4", error=StoreUnavailable("503"))]
    others += [Result(ending=Ending.STUCK, manifest_id=name, error=StuckError("no")) for name in ("m5", "m6")]
    values = batch_metrics(Results((*results.all, *others)), retrying=0, seconds=2.0, target_file_bytes=TARGET)
    assert set(values) <= set(CATALOGUE)
    output_bytes = sum(info.size_bytes for info in harness.store.list("/w/output/"))
    expected = {
        "ManifestsCommitted": 3,
        "ManifestsDeadLettered": 1,
        "ManifestsStuck": 2,
        "BatchDurationSeconds": 2.0,
        "RecordsIn": 6,
        "RecordsOut": 4,
        "RecordsRejected": 2,
        "FilesQuarantined": 1,
        "BytesIn": len(GOOD) + len(FLAWED),
        "InputBytesPerSecond": (len(GOOD) + len(FLAWED)) / 2,
        "BytesOut": output_bytes,
        "OutputFiles": 2,
        "NewColumns": 3,
        "Attempts": 4,
        "Heartbeat": 1,
    }
    assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(("target", "rate"), [(1, 0.0), (10_000_000, None)])
def test_hit_rate(target: int, rate: float | None) -> None:
    """The hit rate is told only where files could have been right-sized."""
    harness = Harness()
    results = harness.runner().run([harness.deliver("m1", GOOD)])
    values = batch_metrics(results, retrying=0, seconds=0.0, target_file_bytes=target)
    assert values.get("OutputFileSizeHitRate") == rate
    assert "InputBytesPerSecond" not in values


def test_repeats_count_nothing() -> None:
    """What was done before is not counted again, neither commits nor dead letters."""
    harness = Harness()
    uris = [harness.deliver("m1", GOOD), harness.put_manifest("bad.json", b"{")]
    harness.runner().run(uris)
    harness.put_manifest("m1.json", harness.store.read("/w/state/archive/2026-01-02/m1.json"))
    harness.put_manifest("bad.json", b"{")
    results = harness.runner().run(uris)
    assert len(results.finished) == 2
    values = batch_metrics(results, retrying=0, seconds=1.0, target_file_bytes=TARGET)
    assert {name for name, value in values.items() if value} == {"BatchDurationSeconds", "Heartbeat"}


def test_rolled_forward_counts_once() -> None:
    """A commit that an earlier driver decided, and did not live to count, is counted when it becomes visible."""
    harness = Harness()
    [result] = harness.runner().run([harness.deliver("m1", GOOD)]).finished
    found = Results((replace(result, attempts=0),))
    values = batch_metrics(found, retrying=0, seconds=1.0, target_file_bytes=TARGET)
    assert (values["ManifestsCommitted"], values["RecordsOut"], values["Attempts"]) == (1, 2, 0)


def test_service_emits_from_the_catalogue() -> None:
    """What a run emits is in the catalogue, and one set a batch."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    [values] = harness.metrics.emitted
    assert set(values) <= set(CATALOGUE)
    assert values["ManifestsCommitted"] == 1
    DroppedMetrics().emit(values)


def test_arrival_to_visible() -> None:
    """Each file that became visible counts the seconds from its event, else from its manifest's creation."""
    harness = Harness()
    early = harness.file("early", GOOD)
    harness.clock.advance(60)
    late, missing = harness.file("late", GOOD), harness.file("missing", GOOD)
    harness.store.delete([missing.uri])
    untimed = harness.file("untimed", FLAWED).model_copy(update={"event_time": None})
    harness.clock.advance(30)
    uri = harness.put_manifest("m1.json", harness.manifest("m1", [early, late, missing, untimed]).to_json())
    harness.clock.advance(10)
    results = harness.runner().run([uri])
    assert latencies(results) == {100: 1, 40: 1, 10: 1}
    harness.put_manifest("again.json", harness.store.read("/w/state/archive/2026-01-02/m1.json"))
    assert latencies(harness.runner().run(harness.waiting())) is None


def test_arrival_of_a_manifest_that_was_rolled_forward() -> None:
    """What one driver decided and the next one published took until then, for each of its files."""
    harness = Harness()
    uri = harness.deliver("m1", GOOD, GOOD)

    def die(step: str, _: str) -> None:
        if step == "decided":
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([uri])
    harness.clock.advance(3600)
    assert latencies(harness.runner().resume(["m1"])) == {3600: 2}


def test_arrivals_of_many_files() -> None:
    """However long they took, a batch tells at most 150 values, and every file counts."""
    harness = Harness()
    files = []
    for number in range(400):
        files.append(harness.file(f"f{number}", GOOD).model_copy(update={"event_time": harness.clock.now()}))
        harness.clock.advance(7)
    files[0] = files[0].model_copy(update={"event_time": harness.clock.now() + timedelta(hours=1)})
    uri = harness.put_manifest("m1.json", harness.manifest("m1", files).to_json())
    counts = latencies(harness.runner().run([uri]))
    assert counts is not None
    assert (len(counts) <= 150, sum(counts.values()), min(counts)) == (True, 400, 0)


def latencies(results: Results) -> dict[float, int] | None:
    values = batch_metrics(results, retrying=0, seconds=1.0, target_file_bytes=TARGET)
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
    harness = Harness()
    harness.metrics = Waiting()
    harness.deliver("m1", GOOD)
    with nullcontext() if error is None else pytest.raises(AccessError):
        harness.run_once(engine=Failing(harness.store))
    assert flushed == [(1 if error is None else 0, FLUSH_SECONDS)]

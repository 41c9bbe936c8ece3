"""Promises of `compactor.foreach_batch`: a stream of the caller, on its own session, compacts each manifest once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import compactor
from compactor.cli.entry import compactor as command
from tests.support.compacting import write
from tests.support.extras import NATIVE

pytestmark = pytest.mark.timeout(600)  # the first one waits for Spark's start

LINE = b'{"id": %d, "Id": "x"}\n'
CONF = ("spark.sql.caseSensitive", "spark.sql.session.timeZone", "spark.sql.parquet.outputTimestampType")


class Lake:
    """A folder of input and `rows`, whose settings name an engine."""

    def __init__(self, root: Path, engine: str) -> None:
        self.raw, self.rows = root / "raw", root / "rows"
        self.checkpoint = str(root / "checkpoint")
        self.raw.mkdir()
        write(self.raw / "2026-01-01.ndjson", LINE % 1)
        compactor.compact(self.raw, self.rows, engine="native")
        settings = root / "rows.compactor" / "compactor.toml"
        settings.write_text(settings.read_text().replace('engine = "native"', f'engine = "{engine}"'))

    def plan(self, *numbers: int) -> None:
        """Write files of one line each, and their manifests."""
        for number in numbers:
            write(self.raw / f"2026-01-{number:02d}.ndjson", LINE % number)
        planned = CliRunner().invoke(command, ["plan", "--in", str(self.rows), str(self.raw)])
        assert planned.exit_code == 0, planned.output

    def run(self, spark: Any, checkpoint: str = "", **options: Any) -> None:
        """Run a stream of the caller until it has delivered everything."""
        query = (
            compactor.manifest_stream(spark, self.rows, max_manifests=2)
            .writeStream.foreachBatch(compactor.foreach_batch(spark, self.rows, **options))
            .option("checkpointLocation", checkpoint or self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(280)

    def ids(self, spark: Any) -> list[str]:
        return sorted(row["id"] for row in spark.read.parquet(f"{self.rows}/*").select("id").collect())


@pytest.fixture
def lake(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> Lake:
    NATIVE.need()
    monkeypatch.delenv("COMPACTOR_CONFIG", raising=False)
    return Lake(tmp_path, engine)


@pytest.mark.parametrize("engine", ["native", pytest.param("spark", marks=pytest.mark.full)])
def test_a_stream_of_the_caller(lake: Lake, spark: Any) -> None:
    """Manifests become rows once, also if all are delivered again; the session stays as it is, and open."""
    before = {name: spark.conf.get(name) for name in CONF}
    batches: list[compactor.BatchResult] = []
    lake.plan(2, 3, 4)
    lake.run(spark, on_batch=batches.append)
    assert sum(each.run.committed for each in batches) == 3
    assert sum(each.run.records for each in batches) == 3
    lake.plan(5)
    lake.run(spark)
    lake.run(spark, checkpoint=f"{lake.checkpoint}-new")  # the ledger knows what is done
    assert {name: spark.conf.get(name) for name in CONF} == before
    assert lake.ids(spark) == ["1", "2", "3", "4", "5"]
    found = compactor.verify(lake.rows, deep=True)
    assert (found.complete, found.manifests, found.rows) == (True, 5, 5)


@pytest.mark.parametrize("engine", ["native"])
def test_a_batch_that_fails_is_delivered_again(lake: Lake, spark: Any) -> None:
    """An error ends the stream; the same checkpoint delivers the batch again, and no row is there twice."""
    lake.plan(2)

    def fail(_batch: compactor.BatchResult) -> None:
        raise LookupError("the caller's own")

    with pytest.raises(Exception, match="the caller's own"):
        lake.run(spark, on_batch=fail)
    again: list[compactor.BatchResult] = []
    lake.run(spark, on_batch=again.append)
    assert [(each.run.committed, each.run.records) for each in again] == [(0, 0)]
    assert lake.ids(spark) == ["1", "2"]
    assert compactor.verify(lake.rows).complete


def lost(*_: object) -> None:
    raise compactor.EngineLost("Spark is gone")


@pytest.mark.parametrize("engine", ["native"])
def test_what_a_dead_batch_left_is_done_by_the_next(lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that was begun, or that Spark does not deliver again, is done by the next batch."""
    lake.plan(2)
    with monkeypatch.context() as patched:
        patched.setattr("compactor.job.publication.Publisher.roll_forward", lost)
        with pytest.raises(Exception, match="Spark is gone"):
            lake.run(spark)
    lake.plan(3)
    lake.run(spark, checkpoint=f"{lake.checkpoint}-new")
    assert lake.ids(spark) == ["1", "2", "3"]
    assert compactor.verify(lake.rows, deep=True).complete


@pytest.mark.parametrize("engine", ["native"])
def test_batches_of_another_shape_and_sessions_of_connect(lake: Lake, spark: Any) -> None:
    """What is not a batch of manifests, or not a session of this process, is refused with what was expected."""
    process = compactor.foreach_batch(spark, lake.rows)
    with pytest.raises(compactor.SettingsError, match=r"\['id'\] -> expected file_path"):
        process(spark.range(1), 0)
    with pytest.raises(compactor.SettingsError, match=r"spark: builtins.str -> expected a pyspark.sql.SparkSession"):
        compactor.foreach_batch("spark", lake.rows)
    with pytest.raises(compactor.SettingsError, match="no settings there"):
        compactor.foreach_batch(spark, lake.rows / "none")
    with pytest.raises(compactor.SettingsError, match="max_manifests: 0"):
        compactor.manifest_stream(spark, lake.rows, max_manifests=0)


@pytest.mark.parametrize("engine", ["spark"])
def test_compact_joins_the_session_that_is_open(lake: Lake, spark: Any) -> None:
    """With the Spark engine, `compact` works on the caller's Spark and leaves it open, with its own properties."""
    before = {name: spark.conf.get(name) for name in CONF}
    write(lake.raw / "2026-01-09.ndjson", b'{"id": 9}\n')
    with ThreadPoolExecutor(1) as pool:  # a thread has no active session
        result = pool.submit(compactor.compact, lake.raw, lake.rows).result()
    assert (result.complete, result.engine, result.rows) == (True, "spark", 1)
    assert {name: spark.conf.get(name) for name in CONF} == before
    assert lake.ids(spark) == ["1", "9"]

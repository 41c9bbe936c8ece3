"""How many files a manifest becomes, and how even they are."""

import random
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from compactor.adapters.spark.conversion import ConvertTask, convert
from compactor.engines.engine import RowPlan
from compactor.schema.schema import Column, SchemaVersion

MIB = 1024 * 1024
EVEN = 0.25
"""Every file is this close to the mean."""


def body(seed: int, size_bytes: int) -> bytes:
    """Lines of digits that compress little."""
    digits = random.Random(seed)
    return b"".join(b'{"v":"%0200x"}\n' % digits.getrandbits(800) for _ in range(size_bytes // 209))


def is_even(sizes: list[int]) -> bool:
    mean = sum(sizes) / len(sizes)
    return all(abs(size - mean) <= EVEN * mean for size in sizes)


@pytest.mark.parametrize(
    ("engine", "ratio"),
    [
        pytest.param("spark", None, id="spark-measured"),
        pytest.param("native", None, id="native-measured"),
        pytest.param("native", 0.999, id="native-learned"),
        pytest.param("spark", 0.999, id="spark-learned", marks=pytest.mark.full),
    ],
    indirect=["engine"],
)
def test_many_small_files_become_files_of_the_target_size(new_workspace, ratio):
    """Their number follows from the input and the ratio, measured on a sample or learned; their sizes are alike."""
    workspace = new_workspace(ratio=ratio, output={"target_file_bytes": MIB}, stream={"manifests_in_flight": 2})
    files = {f"{number:02d}": body(number, MIB // 10) for number in range(40)}
    sizes = [file.size_bytes for file in workspace.compact(files).commit.outputs]
    assert len(sizes) == (round(sum(sizes) / MIB) if ratio is None else 4)
    assert is_even(sizes)


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
@pytest.mark.parametrize(("size_bytes", "conversions"), [(MIB // 2, 1), (2 * MIB, 2)])
def test_a_sample_is_measured_where_there_may_be_several_files(new_workspace, monkeypatch, size_bytes, conversions):
    """What fits into one file is converted once: a sample of it would be all of it."""
    tasks = []

    def counted(session, task):
        tasks.append(task)
        return convert(session, task)

    monkeypatch.setattr("compactor.adapters.spark.engine.convert", counted)
    workspace = new_workspace(ratio=None, output={"target_file_bytes": MIB})
    assert len(workspace.compact({"00": body(0, size_bytes)}).commit.outputs) == tasks[-1].files
    assert len(tasks) == conversions


@pytest.mark.parametrize("partitioning", ["coalesce", "rebalance"])
def test_both_partitionings_write_the_planned_files(spark, tmp_path, partitioning):
    """Rows go to exactly as many files as planned, whether they are shuffled or not."""
    sources = {}
    for number in range(24):
        (tmp_path / f"{number}.ndjson").write_bytes(body(number, MIB // 10))
        sources[f"{tmp_path}/{number}.ndjson"] = f"{tmp_path}/{number}.ndjson"
    now = datetime(2025, 12, 21, tzinfo=UTC)
    columns = (Column(key="v", name="v", added_in=1),)
    task = ConvertTask(
        plan=RowPlan(
            manifest_id="m",
            date=now.date(),
            processed_at=now,
            schema=SchemaVersion(version=1, created_at=now, manifest_id="m", columns=columns),
            metadata_columns=(),
            compression="snappy",
            target_file_bytes=MIB,
        ),
        sources=sources,
        column_keys=("v",),
        overflow_keys=(),
        target=f"{tmp_path}/out/",
        files=3,
        partitioning=partitioning,
    )
    assert convert(spark, task) == 0
    outputs = list((tmp_path / "out").glob("*.parquet"))
    assert len(outputs) == 3
    assert is_even([output.stat().st_size for output in outputs])
    assert sum(pq.read_metadata(output).num_rows for output in outputs) == 24 * (MIB // 10 // 209)

"""The ten questions: each reader in this process gives the same answer."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.readers.queries import ask_duckdb, ask_polars, ask_pyarrow, questions

ROWS = 1000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    start = datetime(2026, 1, 2, tzinfo=UTC)
    texts = {
        name: [f"{name}-{number % 7}" for number in range(ROWS)]
        for name in ("session", "agent", "page", "referrer", "custom_data", "received_at", "ip", "country", "visitor")
    }
    times = pa.array([start + timedelta(seconds=number) for number in range(ROWS)], pa.timestamp("us", "UTC"))
    table = {**texts, "id": list(map(str, range(ROWS))), "price": [1.5] * ROWS, "time": times}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=100)
    return tmp_path / "a.parquet"


def test_all_readers_answer(file: Path) -> None:
    """As many rows, or the same value."""
    found = questions(file)
    assert len(found) == 10
    for question in found:
        by_duckdb, by_polars = ask_duckdb(question, file), ask_polars(question, file)
        assert by_duckdb.num_rows == by_polars.height, question.name
        by_pyarrow = ask_pyarrow(question, file)
        if isinstance(by_pyarrow, pa.Table):
            assert question.name == "most columns" or by_pyarrow.num_rows == by_duckdb.num_rows
        else:
            value = by_pyarrow.as_py() if isinstance(by_pyarrow, pa.Scalar) else by_pyarrow
            assert value == by_duckdb.column(0)[0].as_py() == by_polars.item(0, 0)

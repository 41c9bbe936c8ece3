"""Partitions of either engine's output, and how Spark reads them as folders."""

import json
from typing import Any

import pytest

from compactor.wiring import operating
from tests.support.engine_workspace import NewWorkspace

pytestmark = pytest.mark.full

LINES = [
    {"ts": "2025-09-30T23:59:59Z", "who": "a/b", "odd key": 1},
    {"ts": "2025-10-01T01:00:00+02:00", "who": "é€😀", "n": 2},
    {"ts": "2025-12-21T00:00:00Z", "who": ""},
    {"ts": "never", "n": {"deep": [1]}},
]
INPUT = b"".join(json.dumps(line).encode() + b"\n" for line in LINES) + b"no json\n"


@pytest.mark.parametrize("columns", [None, {"ts": "timestamp", "n": "long"}], ids=("text", "typed"))
def test_both_engines_divide_alike(new_workspace: NewWorkspace, spark: Any, columns: Any) -> None:
    """Late events are in the folder of their day; a filter on the folder finds the rows that the column has."""
    fields = ["event_day = day(ts)", "who_bucket = bucket(who, 4)", "w = identity(who)"]
    workspace = new_workspace(output={"partition_by": fields, "folder": "date={date}"}, columns=columns)
    made = workspace.compact({"a.ndjson": INPUT, "b.ndjson": INPUT})
    assert {(file.partition[0], file.partition[2], file.rows) for file in made.commit.outputs} == {
        ("2025-09-30", "a/b", 2),
        ("2025-09-30", "é€😀", 2),
        ("2025-12-21", "", 2),
        (None, None, 2),
    }
    assert made.commit.unparsed_times == (0 if columns else 2)  # of a typed column, they do not fit the column
    assert made.commit.misfits.get("ts", 0) == (2 if columns else 0)
    read = spark.read.option("mergeSchema", True).parquet(workspace.app.layout.output)
    rows = read.where("event_day = '2025-09-30'").select("who", "w", "who_bucket").distinct().collect()
    assert sorted((row.who, row.w) for row in rows) == [("a/b", "a/b"), ("é€😀", "é€😀")]
    assert read.where("event_day is null").count() == 2
    assert operating.verifier(workspace.app, deep=True).verify_all().discrepancies == []

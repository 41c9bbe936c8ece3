"""The line of each tool that reads a whole output, for each layout of its folders and of either engine."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engine_workspace import NewWorkspace
from tests.support.extras import READERS
from tests.support.reading import plain, read_by

FIELDS = ["event_day = day(at)", "hour(at)", "bucket(id, 4)", "identity(kind)"]
OUTPUTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "default": ({}, set()),
    "hive": ({"folder": "date={date}"}, {"date"}),
    "deep": ({"folder": "by/day-{date}"}, set()),
    "partitions": ({"partition_by": FIELDS}, {"event_day", "at_hour", "id_bucket", "kind_value"}),
    "hive partitions": (
        {"folder": "date={date}", "partition_by": FIELDS},
        {"date", "event_day", "at_hour", "id_bucket", "kind_value"},
    ),
}
ROWS = [
    {"id": 1, "at": "2026-01-02T03:04:05Z", "kind": "7"},
    {"id": 2, "at": "2026-01-03T03:04:05Z", "kind": "8", "late": "x"},
    {"id": 3, "at": "2026-01-03T04:04:05Z", "kind": "7", "last": "y"},
]
COLUMNS = {"id", "at", "kind", "late", "last", "_rescued_data"}


BY_SPARK_IN_SHORT = {"default", "hive partitions"}
"""Spark writes the same files whatever their folders are called; every tool reads all layouts of the native engine."""


def _case(engine: str, layout: str) -> Any:
    is_in_short = engine == "native" or layout in BY_SPARK_IN_SHORT
    return pytest.param(engine, layout, marks=() if is_in_short else pytest.mark.full)


@pytest.mark.parametrize(
    ("engine", "layout"), [_case(*each) for each in product(("spark", "native"), OUTPUTS)], indirect=["engine"]
)
def test_every_tool_reads_all(new_workspace: NewWorkspace, spark: Any, layout: str, tmp_path: Path) -> None:
    """Rows, columns, and the columns of folders; Spark leaves out those below folders that are not Hive's."""
    output, levels = OUTPUTS[layout]
    workspace = new_workspace(output=output, columns={"id": "long"}, schema={"metadata_columns": []})
    for number, row in enumerate(ROWS):
        workspace.compact({f"{number}.ndjson": json.dumps(row).encode() + b"\n"}, f"m{number}")
    for line in workspace.app.settings.reading_lines():
        if line.startswith("pandas.") and not READERS.found():
            continue
        is_spark = line.startswith("spark.")
        table = read_by(line, tmp_path, spark if is_spark else None)
        of_folders = set() if is_spark and layout == "partitions" else levels
        assert set(table.column_names) == COLUMNS | of_folders, line
        assert plain(table, COLUMNS - {"_rescued_data"}) == ROWS, line
        if "event_day" in of_folders:
            assert sorted(str(each) for each in table["event_day"].to_pylist()) == ["2026-01-02"] + ["2026-01-03"] * 2
            assert (table.schema.field("event_day").type == pa.date32()) is not line.startswith(("pandas", "pyarrow"))
            assert sorted(str(each) for each in table["kind_value"].to_pylist()) == ["7", "7", "8"], line

"""The lines by which `compact` and `status` say how to read all rows: each is run as it is printed."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.core.layout import Layout
from compactor.core.text.safe_text import reading_lines
from tests.support.extras import NATIVE, READERS
from tests.support.reading import plain, printed, read_by

NATIVE.need()

CALLS: list[dict[str, list[dict[str, Any]]]] = [
    {
        "2026-01-02-a": [{"id": 1, "at": "2026-01-02T03:04:05Z", "price": 1.5}],
        "2026-01-03-a": [{"id": 2, "at": "2026-01-03T03:04:05Z", "ok": True}],
    },
    {"2026-01-03-b": [{"id": 3, "late": "x"}, {"id": "4", "price": "none"}]},
    {"2026-01-01-c": [{"id": 5, "User": {"name": "Ann"}}, {"id": 6, "very late": 1}]},
]
"""The files of three calls: later ones have new keys, and the last one is of the first day."""

COLUMNS = ["id", "at", "price", "ok", "_rescued_data", "late", "user", "very_late"]
ROWS = [
    {"id": 1, "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "price": 1.5},
    {"id": 2, "at": datetime(2026, 1, 3, 3, 4, 5, tzinfo=UTC), "ok": True},
    {"id": 3, "late": "x"},
    {"id": 4},
    {"id": 5, "user": '{"name": "Ann"}'},
    {"id": 6, "very_late": "1"},
]
ROOT = Path(__file__).parents[3]
STRAY = b"a,b\n1,2\n3,4\n"
TOOLS = ["pandas", "polars", "pyarrow", "duckdb", "spark"]


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def compact(root: Path) -> Result:
    return CliRunner().invoke(command, ["compact", str(root / "raw"), str(root / "rows"), "--types", "infer"])


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """A folder with an output whose files differ in columns, and what each call printed; the last one met a stray."""
    root = tmp_path_factory.mktemp("reading")
    results = []
    for number, files in enumerate(CALLS):
        for name, records in files.items():
            write(root / "raw" / f"{name}.ndjson", b"".join(json.dumps(each).encode() + b"\n" for each in records))
        if number == len(CALLS) - 1:
            write(root / "raw" / "2026-01-03.csv", STRAY)
        results.append(compact(root))
    return root, results


def test_the_block_is_printed_after_any_end(calls: tuple[Path, list[Result]]) -> None:
    """Also after exit 3; `status` prints the same, and the function makes it of the place alone."""
    root, results = calls
    assert [each.exit_code for each in results] == [0, 0, 3]
    status = CliRunner().invoke(command, ["status", str(root / "rows")])
    expected = list(reading_lines(Layout("", str(root / "rows"), ""), has_partitions=False))
    assert [printed(each.stdout) for each in (*results, status)] == [expected] * 4
    assert [line.partition(".")[0].partition(" ")[0] for line in expected] == TOOLS


@pytest.mark.parametrize("tool", [pytest.param("pandas", marks=READERS.needed), *TOOLS[1:-1]])
def test_each_tool_reads_all_rows_and_columns(calls: tuple[Path, list[Result]], tool: str, tmp_path: Path) -> None:
    """Spark's line is tested where there is a session, in `tests/spark/test_reading_lines.py`."""
    _, results = calls
    [line] = [each for each in printed(results[-1].stdout) if each.startswith(tool)]
    table = read_by(line, tmp_path)
    assert sorted(table.column_names) == sorted(COLUMNS)
    assert plain(table, [name for name in COLUMNS if name != "_rescued_data"]) == ROWS


def test_documents_have_the_same_lines() -> None:
    """The table explains each line, and the first screen of the README shows what is printed."""
    document = (ROOT / "docs" / "reading.md").read_text()
    table = document.partition("<!-- reading lines -->")[2].partition("<!-- reading lines end")[0]
    rows = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert rows == list(reading_lines(Layout("", "rows", ""), has_partitions=False))
    screens = (ROOT / "README.md").read_text().split("```text\n")
    assert printed(screens[1]) == [line.replace("rows", ".../rows", 1) for line in rows]
    columns = Layout("", "rows", "").columns_file()
    assert f"The **columns file** is `{columns}`" in document
    assert f'schema=pyarrow.parquet.read_schema("{columns}"))`' in document


def test_made_again_by_a_call_without_new_files(calls: tuple[Path, list[Result]]) -> None:
    """If the file without rows was deleted, the next call makes it again."""
    root, _ = calls
    [columns] = (root / "rows").rglob("columns.parquet")
    before = columns.read_bytes()
    columns.unlink()
    compact(root)
    assert columns.read_bytes() == before

"""Runs the lines by which commands say how tools read the output, each as it is printed."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.extras import readers_python

# pandas has an environment of its own: the product must do without NumPy.
PANDAS = """
import os, sys, pandas, pyarrow, pyarrow.parquet
found = eval(sys.argv[1])
table = pyarrow.table({name: pyarrow.array(list(found[name]), from_pandas=True) for name in found.columns})
pyarrow.parquet.write_table(table, os.environ["FOUND"])
"""

# DuckDB's command line is no package of the tests. This one takes the same words, and writes down what it found.
DUCKDB = f"""#!{sys.executable}
import os, sys, duckdb
option, query = sys.argv[1:]
assert option == "-c"
duckdb.sql(query).write_parquet(os.environ["FOUND"])
"""


def printed(output: str) -> list[str]:
    """The lines of the block that a command printed; none if it printed none."""
    lines = iter(output.split("\n"))
    first = next((line for line in lines if line.startswith("read it ")), None)
    if first is None:
        return []
    found = [first]
    for line in lines:
        if not line.startswith(" " * 12):
            break
        found.append(line)
    return [line[12:] for line in found]


def read_by(line: str, folder: Path, spark: Any = None) -> pa.Table:
    """All rows that a line reads.

    Args:
        line: As it is printed.
        folder: A place for what is needed beside.
        spark: The session of Spark; only its own line needs one.
    """
    tool = line.partition(".")[0].partition(" ")[0]
    if tool == "duckdb":
        program = folder / "duckdb"
        program.write_text(DUCKDB)
        program.chmod(0o755)
        return _written_by(["sh", "-c", line], folder)
    if tool == "pandas":
        return _written_by([str(readers_python()), "-c", PANDAS, line], folder)
    if tool != "spark":
        importlib.import_module(line.partition("(")[0].rpartition(".")[0])  # such as pyarrow.dataset
    found = eval(line, {tool: spark if tool == "spark" else sys.modules[tool]})  # noqa: S307 - it is meant to be pasted
    match tool:
        case "spark":
            return found.toArrow()
        case "polars":
            return found.to_arrow()
    return found.to_table()


def _written_by(words: Sequence[str], folder: Path) -> pa.Table:
    found = folder / "found.parquet"
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FOUND": str(found)}
    subprocess.run(words, check=True, env=environment)
    return pq.read_table(found, partitioning=None)


def plain(table: pa.Table, names: Iterable[str]) -> list[dict[str, Any]]:
    """Some columns of all rows, sorted by `id`, without nulls."""
    rows = table.select(list(names)).to_pylist()
    return sorted(({key: value for key, value in row.items() if value is not None} for row in rows), key=_id)


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])

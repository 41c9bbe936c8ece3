"""DuckDB's COPY from JSON to Parquet, with given columns or with detected ones."""

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb

from bench.protocol import first_keys, parser, run_passes

FILE_BYTES = 128 * 1024 * 1024


def reader(files: Sequence[Path], how: str, more: str = "") -> str:
    """The table function that reads the files.

    Args:
        files: What to read.
        how: `columns`: all keys of the first lines, as text; `union`: every line is sampled for names and types.
        more: Further options.
    """
    names = "[" + ", ".join(_quoted(str(file)) for file in files) + "]"
    if how == "columns":
        columns = ", ".join(f"{_quoted(key)}: 'VARCHAR'" for key in first_keys(files[0]))
        return f"read_json({names}, format = 'newline_delimited', columns = {{{columns}}}{more})"
    return f"read_json_auto({names}, format = 'newline_delimited', sample_size = -1, union_by_name = true{more})"


def convert(how: str, more: str, files: Sequence[Path], output: Path) -> None:
    """Convert the files in one statement; each thread writes its own files."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {os.cpu_count()}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"COPY (SELECT * FROM {reader(files, how, more)}) TO {_quoted(str(output))} "  # noqa: S608 - quoted
            f"(FORMAT parquet, COMPRESSION snappy, FILE_SIZE_BYTES {FILE_BYTES})"
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def main() -> None:
    """Run as a contender."""
    arguments = parser()
    arguments.add_argument("--read", choices=("columns", "union"), required=True)
    arguments.add_argument("--ignore-errors", action="store_true")
    parsed = arguments.parse_args()
    more = ", ignore_errors = true" if parsed.ignore_errors else ""
    run_passes(parsed, lambda files, output: convert(parsed.read, more, files, output))


if __name__ == "__main__":
    main()

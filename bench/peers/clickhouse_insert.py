"""ClickHouse in this process (chdb): INSERT from JSON lines into a Parquet file, its columns given or inferred."""

import csv
from collections.abc import Sequence
from pathlib import Path

import chdb

from bench.protocol import first_keys, parser, run_passes

_INFERRED = "schema_inference_mode = 'union'"
_ALLOW_ERRORS = "input_format_allow_errors_ratio = 0.1, input_format_record_errors_file_path = {}"


def convert(how: str, errors: Path | None, files: Sequence[Path], output: Path) -> int | None:
    """Convert the files in one statement.

    Args:
        how: `columns`: all keys of the first lines, as text; `union`: names and types of all files are inferred.
        errors: Skip lines that are not JSON, and record them in this file; None to fail at one.
        files: All files of a folder.
        output: The folder for the Parquet file.

    Returns:
        The recorded lines.
    """
    structure = ""
    settings = ["output_format_parquet_compression_method = 'snappy'"]
    if how == "columns":
        columns = ", ".join(f"`{key}` Nullable(String)" for key in first_keys(files[0]))
        structure = f", {_quoted(columns)}"
    else:
        settings.append(_INFERRED)
    if errors is not None:
        errors.unlink(missing_ok=True)
        settings.append(_ALLOW_ERRORS.format(_quoted(str(errors))))
    source = f"file({_quoted(str(files[0].parent / '*'))}, 'JSONEachRow'{structure})"
    target = f"file({_quoted(str(output / 'rows.parquet'))}, 'Parquet')"
    chdb.query(f"INSERT INTO FUNCTION {target} SELECT * FROM {source} SETTINGS {', '.join(settings)}")  # noqa: S608 - quoted
    return None if errors is None else _recorded(errors)


def _recorded(errors: Path) -> int:
    if not errors.exists():
        return 0
    with errors.open(newline="", errors="replace") as file:
        return sum(1 for _ in csv.reader(file))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def main() -> None:
    """Run as a contender."""
    arguments = parser()
    arguments.add_argument("--read", choices=("columns", "union"), required=True)
    arguments.add_argument("--ignore-errors", action="store_true")
    parsed = arguments.parse_args()
    output = parsed.output.resolve()
    parsed.input, parsed.output = parsed.input.resolve(), output
    errors = output.with_name(f"{output.name}-errors.csv") if parsed.ignore_errors else None
    run_passes(parsed, lambda files, folder: convert(parsed.read, errors, files, folder))


if __name__ == "__main__":
    main()

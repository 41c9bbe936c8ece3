"""pyarrow's JSON reader, which infers names and types from every block of a file, into Parquet by its writer."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import json

from bench.protocol import parser, run_passes

FILE_BYTES = 128 * 1024 * 1024
"""Length in memory of the tables that become one file."""


def convert(files: Sequence[Path], output: Path) -> None:
    """Read file by file, and write what is read as one file whenever there is enough."""
    tables: list[pa.Table] = []
    written = held = 0
    for file in files:
        with pa.input_stream(str(file), compression="detect") as stored:
            tables.append(json.read_json(stored))
        held += tables[-1].nbytes
        if held >= FILE_BYTES or file is files[-1]:
            table = pa.concat_tables(tables, promote_options="permissive")
            pq.write_table(table, output / f"part-{written:05}.parquet", compression="snappy")
            tables, held = [], 0
            written += 1


def main() -> None:
    """Run as a contender."""
    run_passes(parser().parse_args(), convert)


if __name__ == "__main__":
    main()

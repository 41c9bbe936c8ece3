"""Polars' lazy scan of NDJSON into its Parquet sink; it infers names and types from every line."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bench.protocol import parser, run_passes

FILE_BYTES = 128 * 1024 * 1024


def convert(files: Sequence[Path], output: Path, *, ignore_errors: bool) -> None:
    """Convert the files in one streaming query."""
    pl.scan_ndjson(list(files), infer_schema_length=None, ignore_errors=ignore_errors).sink_parquet(
        pl.PartitionBy(output, approximate_bytes_per_file=FILE_BYTES), compression="snappy", engine="streaming"
    )


def main() -> None:
    """Run as a contender."""
    arguments = parser()
    arguments.add_argument("--ignore-errors", action="store_true")
    parsed = arguments.parse_args()
    run_passes(parsed, lambda files, output: convert(files, output, ignore_errors=parsed.ignore_errors))


if __name__ == "__main__":
    main()

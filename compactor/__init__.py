"""Turn many small NDJSON objects into few, right-sized Parquet files, losing and doubling nothing."""

__version__ = "0.1.0"

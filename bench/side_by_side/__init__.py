"""The same dirty folder by the compactor, DuckDB and dlt: steps, seconds, rows, and what each says."""

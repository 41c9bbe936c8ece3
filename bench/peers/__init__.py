"""One module for each way to turn NDJSON into Parquet, each run in a process of its own."""

"""How fast each way to Parquet is on each kind of input, and what became of every line."""

"""What turns the files of a manifest into staged Parquet: the engine contract and the native engine."""

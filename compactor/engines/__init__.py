"""Turns the files of a manifest into staged Parquet: the engine port and the native engine."""

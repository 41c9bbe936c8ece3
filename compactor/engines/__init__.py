"""Turns the files of a manifest into staged Parquet: the port of the engines, and each engine without Spark itself."""

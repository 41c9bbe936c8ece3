"""Turns the files of a manifest into staged Parquet: the engines' port, and all parts of the engines without Spark."""

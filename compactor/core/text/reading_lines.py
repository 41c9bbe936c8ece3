"""One line for each tool that reads a whole output, as commands show them and documents explain them. No I/O."""

import json
import re

from compactor.core.layout import Layout
from compactor.core.text.safe_text import quoted, visible_json

_EXPANDED = set('"$`\\!')  # what a shell acts on within double quotes
_HADOOP_PATTERN = re.compile(r"([*?\[\]{}\\])")
_DUCKDB_PATTERN = re.compile(r"([*?\[])")
_HIVE_FOLDER = re.compile(r"[^/=]+=\{date\}")


def reading_lines(layout: Layout, *, has_partitions: bool) -> tuple[str, ...]:
    """Expressions of Python with the full name of each function, of Spark with its session, and a command of a shell.

    Args:
        layout: Where the output is, and what the folders of its dates are called.
        has_partitions: Whether these have folders of partitions.
    """
    place = layout.output.rstrip("/")
    is_hive = _HIVE_FOLDER.fullmatch(layout.output_folder) is not None
    folder, more = _literal(place), ', partitioning="hive"' if is_hive or has_partitions else ""
    spark = _HADOOP_PATTERN.sub(r"\\\1", re.sub("^s3://", "s3a://", place))
    options = '.option("mergeSchema", True)'
    if not is_hive and (has_partitions or "/" in layout.output_folder):
        options += '.option("recursiveFileLookup", True)'  # Spark finds no partitions below folders of other names
    elif not is_hive:
        spark += "/*"
    return (
        f"pandas.read_parquet({folder})",
        f'polars.read_parquet({folder}, missing_columns="insert")',
        f"pyarrow.dataset.dataset({folder}{more})",
        _duckdb(place),
        f"spark.read{options}.parquet({_literal(spark)})",
    )


def _duckdb(place: str) -> str:
    glob = _DUCKDB_PATTERN.sub(r"[\1]", place).replace("'", "''") + "/**/*.parquet"
    query = f"FROM read_parquet('{glob}', union_by_name = true)"
    # A query has single quotes, so double ones read better where a shell expands nothing in them.
    word = quoted(query) if _EXPANDED & set(query) or not query.isprintable() else f'"{query}"'
    return f"duckdb -c {word}"


def _literal(text: str) -> str:
    """A text as a literal of Python, which a terminal shows as it is."""
    return visible_json(json.dumps(text, ensure_ascii=False))

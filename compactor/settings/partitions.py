"""Checks of `output.partition_by` together with other keys."""

from collections.abc import Iterator

from compactor.core.inputs.path_columns import path_columns
from compactor.core.partitions import PartitionField, parse_field
from compactor.settings.validation import Source

_KEY = "output.partition_by"


def check_partitions(source: Source) -> None:
    """Record folders of partitions that have the name of the folder of the date."""
    folder = source.values.get("output", {}).get("folder")
    taken = {name.lower() for name in path_columns(f"/{folder}/file")} if isinstance(folder, str) else set()
    for text, field in _fields(source):
        if field.name.lower() in taken:
            source.fault(_KEY, text, "another name than that of the folder of the date")


def check_table_partitions(source: Source) -> None:
    """Record what a table lacks: it finds the columns of its partitions by the schema file, which types them."""
    if source.values.get("output", {}).get("table") != "iceberg":
        return
    if source.values.get("schema", {}).get("file", "") == "":
        for text, _ in _fields(source):
            source.fault(_KEY, text, 'none without a schema file that has its key, because output.table is "iceberg"')


def _fields(source: Source) -> Iterator[tuple[str, PartitionField]]:
    """The fields that can be parsed. The section's own check has recorded the others."""
    texts = source.values.get("output", {}).get("partition_by", ())
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            yield text, parse_field(text)
        except (ValueError, TypeError, AttributeError):
            continue

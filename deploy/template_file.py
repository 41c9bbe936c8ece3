"""Reads the template as plain values: `!Sub x` is `{"Fn::Sub": x}`, as in its JSON form."""

import json
from pathlib import Path
from typing import Any

from cfnlint.decode.cfn_yaml import load

from compactor.schema.schema import METADATA_TYPES, RESCUED_COLUMN, SchemaVersion

TEMPLATE = Path(__file__).with_name("template.yaml")

_HIVE_TYPES = {"long": "bigint"}  # all others are spelled alike


def load_template(path: Path = TEMPLATE) -> dict[str, Any]:
    """The template as a document."""
    document: dict[str, Any] = json.loads(json.dumps(load(str(path))))
    return document


def with_columns(template: dict[str, Any], schema: SchemaVersion, metadata_columns: tuple[str, ...]) -> dict[str, Any]:
    """The template with the columns of the output in its table.

    Args:
        template: As it was read.
        schema: The latest version of the schema.
        metadata_columns: Columns about a row's origin.
    """
    columns = {name: METADATA_TYPES[name] for name in metadata_columns}
    for column in schema.columns:
        spelled = str(column.type)
        columns[column.name] = _HIVE_TYPES.get(spelled, spelled)
    columns[RESCUED_COLUMN] = "map<string,string>"
    changed: dict[str, Any] = json.loads(json.dumps(template))
    table = changed["Resources"]["EventsTable"]["Properties"]["TableInput"]
    # A table has each name once; a column called like the partition can be read from the files alone.
    taken = {key["Name"] for key in table["PartitionKeys"]}
    table["StorageDescriptor"]["Columns"] = [
        {"Name": name, "Type": kind} for name, kind in columns.items() if name not in taken
    ]
    return changed

"""Reads the template as plain values: `!Sub x` becomes `{"Fn::Sub": x}`, as in JSON."""

import json
from pathlib import Path
from typing import Any

from cfnlint.decode.cfn_yaml import load

from compactor.schema.schema import METADATA_TYPES, RESCUED_COLUMN, SchemaVersion

TEMPLATE = Path(__file__).with_name("template.yaml")

_HIVE_TYPES = {"long": "bigint"}  # other types have the same name in Hive


def load_template() -> dict[str, Any]:
    """The template as a document."""
    document: dict[str, Any] = json.loads(json.dumps(load(str(TEMPLATE))))
    return document


def with_columns(template: dict[str, Any], schema: SchemaVersion, metadata_columns: tuple[str, ...]) -> dict[str, Any]:
    """A copy of the template whose table of the output has the columns of a schema version and of a row's origin."""
    columns = {name: METADATA_TYPES[name] for name in metadata_columns}
    columns |= {each.name: _HIVE_TYPES.get(str(each.type), str(each.type)) for each in schema.columns}
    columns[RESCUED_COLUMN] = "map<string,string>"
    changed: dict[str, Any] = json.loads(json.dumps(template))
    table = changed["Resources"]["EventsTable"]["Properties"]["TableInput"]
    # Column names are unique in a table, so a column named like the partition can only be read from the files.
    taken = {key["Name"] for key in table["PartitionKeys"]}
    table["StorageDescriptor"]["Columns"] = [
        {"Name": name, "Type": kind} for name, kind in columns.items() if name not in taken
    ]
    return changed

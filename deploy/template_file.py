"""Reads the template as plain values: `!Sub x` becomes `{"Fn::Sub": x}`, as in JSON."""

import json
from pathlib import Path
from typing import Any

from cfnlint.decode.cfn_yaml import load

from compactor.schema.catalog import catalog_columns
from compactor.schema.schema import SchemaVersion

TEMPLATE = Path(__file__).with_name("template.yaml")


def load_template() -> dict[str, Any]:
    """The template as a document."""
    document: dict[str, Any] = json.loads(json.dumps(load(str(TEMPLATE))))
    return document


def with_columns(template: dict[str, Any], schema: SchemaVersion, metadata_columns: tuple[str, ...]) -> dict[str, Any]:
    """A copy of the template whose table of the output has the columns of a schema version and of a row's origin."""
    changed: dict[str, Any] = json.loads(json.dumps(template))
    table = changed["Resources"]["EventsTable"]["Properties"]["TableInput"]
    # Column names are unique in a table, so a column named like the partition can only be read from the files.
    taken = {key["Name"] for key in table["PartitionKeys"]}
    table["StorageDescriptor"]["Columns"] = [
        {"Name": name, "Type": kind}
        for name, kind in catalog_columns(schema, metadata_columns).items()
        if name not in taken
    ]
    return changed

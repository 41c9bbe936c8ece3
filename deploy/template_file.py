"""Reads the template as plain values: `!Sub x` becomes `{"Fn::Sub": x}`, as in JSON."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cfnlint.decode.cfn_yaml import load

from compactor.schema.catalog import catalog_columns, drift, table_columns
from compactor.schema.schema import SchemaVersion

TEMPLATE = Path(__file__).with_name("template.yaml")


def load_template(path: Path = TEMPLATE) -> dict[str, Any]:
    """A template as a document."""
    document: dict[str, Any] = json.loads(json.dumps(load(str(path))))
    return document


def with_modules(template: dict[str, Any], modules: Sequence[str]) -> dict[str, Any]:
    """A copy of the template whose job has what pip installs on Glue: `package==version`, or wheels on S3.

    The template has the list itself, because the value of a parameter has 4,096 bytes at most [CloudFormation quotas].
    The arguments of a job may have 260 KB together ["Using job parameters in AWS Glue jobs"].
    """
    changed: dict[str, Any] = json.loads(json.dumps(template))
    changed["Resources"]["Job"]["Properties"]["DefaultArguments"]["--additional-python-modules"] = ",".join(modules)
    return changed


def with_columns(
    template: dict[str, Any], schema: SchemaVersion, metadata_columns: tuple[str, ...], table_id: str = "EventsTable"
) -> dict[str, Any]:
    """A copy of the template whose table of the output has the columns of a schema version and of a row's origin."""
    changed: dict[str, Any] = json.loads(json.dumps(template))
    table = changed["Resources"][table_id]["Properties"]["TableInput"]
    table["StorageDescriptor"]["Columns"] = []
    columns = drift(table_columns(table), catalog_columns(schema, metadata_columns)).missing
    table["StorageDescriptor"]["Columns"] = [{"Name": name, "Type": kind} for name, kind in columns.items()]
    return changed

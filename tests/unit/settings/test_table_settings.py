"""What the settings of a table sink need, for each kind of catalog, and what two streams may not share."""

from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.settings import parse_settings

PATHS: dict[str, Any] = {
    "paths": {name: f"/w/{name}" for name in ("manifests", "output", "state")},
    "input": {"allowed_prefixes": ["/w/raw"]},
}


def faults(**sections: Any) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        parse_settings({**PATHS, **sections})
    return [fault.partition(":")[0] for fault in raised.value.faults]


def test_what_is_needed() -> None:
    """Where the catalog is, for a table with a name; a catalog without a name would silently be none."""
    assert faults(table={"name": "lake.events"}) == ["table.uri"]
    assert faults(table={"catalog": "sql", "name": "lake.events"}) == ["table.uri", "table.warehouse"]
    assert faults(table={"catalog": "s3tables", "name": "lake.events"}) == ["table.warehouse"]
    assert faults(table={"uri": "https://catalog.example"}) == ["table.name"]
    assert faults(table={"catalog": "glue"}) == ["table.name"]
    assert faults(table={"catalog": "glue", "name": "events"}) == ["table.name"]
    parse_settings({**PATHS, "table": {"catalog": "glue", "name": "lake.events"}})
    parse_settings({**PATHS, "table": {"merge_hours": 24.0}})


def test_the_partition_is_a_column() -> None:
    """The catalogs take the partition of a file from its column."""
    glue = {"catalog": "glue", "name": "lake.events"}
    assert faults(table=glue, schema={"metadata_columns": ["_manifest_id"]}) == ["schema.metadata_columns"]
    parse_settings({**PATHS, "table": glue, "schema": {"metadata_columns": ["_manifest_id", "file_date"]}})
    for folder in ("file_date={date}", "by/File_Date={date}/rows"):
        assert faults(table=glue, output={"folder": folder}) == ["output.folder"]


def test_a_table_for_each_stream() -> None:
    """Two streams of one table would each believe that it has their batches."""
    streams = [{"name": name, "input": {"allowed_prefixes": [f"/w/raw/{name}"]}} for name in ("a", "b")]
    named = [{**each, "table": {"name": f"lake.{each['name']}"}} for each in streams]
    glue = {"catalog": "glue", "name": "lake.events"}
    assert faults(table=glue, streams=streams) == ["streams.b.table.name"]
    assert len(parse_settings({**PATHS, "table": glue, "streams": named}).streams) == 2

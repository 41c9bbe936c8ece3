"""The table of the output in the Glue Data Catalog, on a local stand-in: it gets new columns, and keeps all else."""

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner

from compactor.adapters.aws.clients import aws_client
from compactor.adapters.aws.glue_table import GlueTable
from compactor.cli.entry import compactor as command
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.schema.catalog import Drift, TableColumns, catalog_columns, drift
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.schema.schema import Column, SchemaVersion
from compactor.settings.toml import toml_of
from compactor.upkeep.catalog_columns import COMPARE_SECONDS, EVERY_SECONDS, FIRST_PAUSE_SECONDS, catalog_columns_task
from compactor.upkeep.tasks import Tasks
from tests.deployment.resolving import parameters_of, resources, template
from tests.support.aws_stand_in import REGION
from tests.support.harness import Harness
from tests.support.logged import events_logged
from tests.support.memory_store import ManualClock

RESCUED = {"_rescued_data": "map<string,string>"}


def table_input(name: str) -> dict[str, Any]:
    """The table that the stack creates."""
    found = resources(template(), {**parameters_of("prod"), "EventsTableName": name})
    made: dict[str, Any] = found["EventsTable"]["Properties"]["TableInput"]
    return made


@dataclass(frozen=True)
class Catalog:
    """A database with a table of the output and one of another stream."""

    client: Any
    database: str

    def table(self, name: str = "events") -> GlueTable:
        return GlueTable(client=self.client, database=self.database, table=name)

    def read(self, name: str = "events") -> dict[str, Any]:
        found: dict[str, Any] = self.client.get_table(DatabaseName=self.database, Name=name)["Table"]
        return found

    def types(self, name: str = "events") -> dict[str, str]:
        return {each["Name"]: each["Type"] for each in self.read(name)["StorageDescriptor"]["Columns"]}


@pytest.fixture
def catalog(aws_endpoint: str) -> Catalog:
    client = aws_client("glue", REGION, aws_endpoint)
    made = Catalog(client, f"d{uuid.uuid4().hex[:12]}")
    client.create_database(DatabaseInput={"Name": made.database})
    for name in ("events", "others"):
        client.create_table(DatabaseName=made.database, TableInput=table_input(name))
    return made


def test_new_columns_and_nothing_else(catalog: Catalog) -> None:
    """Columns come behind the others; projection, place and parameters stay, and so do columns of the table alone."""
    before = catalog.read()
    assert catalog.table().add({"id": "string", **RESCUED}).missing == {"id": "string"}
    catalog.table().add({"n": "bigint"})
    assert catalog.types() == {**RESCUED, "id": "string", "n": "bigint"}
    after = catalog.read()
    for key in ("Parameters", "PartitionKeys", "TableType", "Name"):
        assert after[key] == before[key]
    assert after["Parameters"]["projection.enabled"] == "true"
    for key in ("Location", "SerdeInfo", "InputFormat", "OutputFormat"):
        assert after["StorageDescriptor"][key] == before["StorageDescriptor"][key]
    version = after["VersionId"]
    assert not catalog.table().add({"id": "string", "file_date": "string"})  # a partition key is no column
    assert catalog.read()["VersionId"] == version, "written although nothing was missing"


def test_another_writer(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that changes between reading and writing is read again; its new column is kept."""
    table, sent = catalog.table(), []
    update = catalog.client.update_table

    def raced(**arguments: Any) -> Any:
        sent.append(arguments)
        if len(sent) == 1:
            other = GlueTable(client=catalog.client, database=table.database, table=table.table)
            monkeypatch.setattr(catalog.client, "update_table", update)
            other.add({"other": "string"})
            monkeypatch.setattr(catalog.client, "update_table", raced)
            refusal = {"Error": {"Code": "ConcurrentModificationException", "Message": "changed"}}
            raise ClientError(refusal, "UpdateTable")
        return update(**arguments)

    monkeypatch.setattr(catalog.client, "update_table", raced)
    table.add({"own": "string"})
    assert catalog.types() == {**RESCUED, "other": "string", "own": "string"}
    first, second = (each["VersionId"] for each in sent)
    assert first != second


def test_a_table_that_always_changes(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few losses against other writers the caller is told, and tries again later."""

    def refused(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ConcurrentModificationException"}}, "UpdateTable")

    monkeypatch.setattr(catalog.client, "update_table", refused)
    with pytest.raises(StoreUnavailable, match="another writer"):
        catalog.table().add({"own": "string"})


def test_no_such_table(catalog: Catalog) -> None:
    """A missing table is an error that names it."""
    with pytest.raises(AccessError, match=rf"Glue table {catalog.database}.gone"):
        catalog.table("gone").columns()


def test_no_type_changes() -> None:
    """A table never gets another type by itself, and case and blanks are no difference."""
    found = TableColumns({"n": "string", "d": "decimal(10, 2)"}, frozenset({"file_date"}))
    wanted = {"n": "bigint", "d": "decimal(10,2)", "file_date": "string"}
    assert drift(found, wanted) == Drift({}, {"n": ("string", "bigint")})


def version(number: int, *names: str) -> SchemaVersion:
    columns = tuple(Column(key=name, name=name, added_in=number) for name in names)
    return SchemaVersion(version=number, created_at=ManualClock().now(), manifest_id="m", columns=columns)


def test_columns_that_differ_in_case() -> None:
    """The catalog does not distinguish case, so the first of two such names has the column."""
    columns = (Column(key="A", name="A", added_in=1, type="long"), Column(key="a", name="a", added_in=1))
    schema = version(1).model_copy(update={"columns": columns})
    assert catalog_columns(schema, ("_manifest_id",)) == {"_manifest_id": "string", "a": "bigint", **RESCUED}


def test_nested_types() -> None:
    """They are in Hive's spelling, which has no keys other than words: a struct with others is left out."""
    kinds = {
        "l": ("list<long>", "array<bigint>"),
        "s": ("struct<Id:long,m:map<string,timestamp_ntz>>", "struct<Id:bigint,m:map<string,timestamp>>"),
        "q": ("list<struct<`a b`:long>>", None),
        "d": ("map<string,decimal(9,2)>", "map<string,decimal(9,2)>"),
    }
    columns = tuple(Column(key=key, name=key, added_in=1, type=kind) for key, (kind, _) in kinds.items())
    schema = version(1).model_copy(update={"columns": columns})
    expected = {key: hive for key, (_, hive) in kinds.items() if hive is not None}
    assert catalog_columns(schema, ()) == {**expected, **RESCUED}


@pytest.mark.parametrize("name", ["a\nb", "a\x00", "x" * 256])
def test_names_that_the_catalog_refuses(name: str) -> None:
    """A name that the catalog refuses is left out, and the others get their columns."""
    assert catalog_columns(version(1, name, "é \U0001f600"), ()) == {"é \U0001f600": "string", **RESCUED}


def test_when_the_job_updates_the_table(catalog: Catalog) -> None:
    """At the start, with each new version, and every hour; after a failure it waits."""
    harness, latest = Harness(), [EMPTY_SCHEMA]
    clock = harness.clock
    tasks = Tasks(harness.app().state, [catalog_columns_task(catalog.table(), lambda: latest[0], (), clock)])

    def step(seconds: float = EVERY_SECONDS) -> list[str]:
        clock.advance(seconds)
        tasks.step()
        tasks.wait()
        return [*catalog.types()]

    step()
    latest[0] = version(1, "a")
    assert step() == ["_rescued_data", "a"]
    storage = {**catalog.read()["StorageDescriptor"], "Columns": []}
    made = {**table_input("events"), "StorageDescriptor": storage}
    catalog.client.update_table(DatabaseName=catalog.database, TableInput=made)  # as a deployment may do
    assert step() == []
    assert step(COMPARE_SECONDS) == ["a", "_rescued_data"]
    catalog.client.delete_table(DatabaseName=catalog.database, Name="events")
    latest[0] = version(2, "a", "b")
    with events_logged("task.failed") as failed:
        clock.advance(EVERY_SECONDS)
        for _ in range(2):  # the second one comes too early
            tasks.step()
            tasks.wait()
    assert len(failed) == 1
    catalog.client.create_table(DatabaseName=catalog.database, TableInput=table_input("events"))
    assert step(FIRST_PAUSE_SECONDS) == ["_rescued_data", "a", "b"]


def test_a_new_key_becomes_a_column_of_its_table(catalog: Catalog) -> None:
    """Within one run of the job; another stream's table stays as it is, and a job without a table goes on."""
    others = catalog.read("others")
    harness = Harness()
    harness.deliver("m1", b'{"Late Key": 1}\n')
    harness.run_once(catalog_table=catalog.table())
    assert catalog.types() == {**RESCUED, "late_key": "string"}
    assert catalog.read("others") == others
    harness.deliver("m2", b'{"Late Key": 1, "more": 2}\n')
    catalog.client.delete_table(DatabaseName=catalog.database, Name="events")
    assert harness.run_once(catalog_table=catalog.table()).committed == 1


@pytest.fixture
def config(catalog: Catalog, aws_endpoint: str, tmp_path: Path) -> Path:
    paths = {name: str(tmp_path / name) for name in ("manifests", "output", "state")}
    file = tmp_path / "settings.toml"
    settings = {
        "paths": paths,
        "input": {"allowed_prefixes": [str(tmp_path / "raw")]},
        "schema": {"table": f"{catalog.database}.events"},
        "stream": {"source": "listing"},
        "aws": {"region": REGION, "endpoint_url": aws_endpoint},
    }
    for place in (*paths.values(), str(tmp_path / "raw")):
        Path(place).mkdir()
    file.write_text(toml_of(settings))
    return file


def call(config: Path, *arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, ["--config", str(config), *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_publish_by_hand(catalog: Catalog, config: Path, tmp_path: Path) -> None:
    """`schema publish` adds what is missing and says so; files are read as before; a wrong type is for a person."""
    app_schemas = tmp_path / "state" / "schemas"
    app_schemas.mkdir(parents=True)
    (app_schemas / "1.json").write_text(version(1, "id", "n").model_dump_json())
    output = tmp_path / "output" / "merged-parquet-2026-01-02"
    output.mkdir()
    pq.write_table(pa.table({"id": ["a"], "n": ["1"]}), output / "x.parquet")
    read = pq.read_table(output / "x.parquet").to_pylist()
    code, shown, _ = call(config, "schema", "publish")
    assert (code, shown.splitlines()[0]) == (
        0,
        f"{catalog.database}.events has the columns of schema version 1: 2 columns added",
    )
    assert [*catalog.types()] == ["_rescued_data", "id", "n"]
    assert call(config, "schema", "publish")[1].endswith("; none to add\n")
    assert duckdb.read_parquet(f"{output}/*.parquet").fetchall() == [("a", "1")]
    assert pq.read_table(output / "x.parquet").to_pylist() == read
    storage = catalog.read()["StorageDescriptor"]
    wrong = [{**each, "Type": "int"} if each["Name"] == "n" else each for each in storage["Columns"]]
    made = {**table_input("events"), "StorageDescriptor": {**storage, "Columns": wrong}}
    catalog.client.update_table(DatabaseName=catalog.database, TableInput=made)
    code, shown, said = call(config, "schema", "publish")
    assert (code, shown.splitlines()[-1]) == (3, "  n  int in the table, expected string")
    assert "1 column with other types than the output" in said
    document = json.loads(call(config, "schema", "publish", "--json")[1])
    assert document["other_types"] == [{"column": "n", "found": "int", "expected": "string"}]


def test_nothing_to_publish_to(config: Path) -> None:
    """Without a table in the settings, and with words too many, the command says what it expected."""
    config.write_text("".join(line for line in config.read_text().splitlines(True) if not line.startswith("table")))
    code, _, said = call(config, "schema", "publish")
    assert code == 2
    assert 'schema.table: "" -> expected the Glue table of the output, as database.table' in said
    assert call(config, "schema", "publish", "now")[0] == 2

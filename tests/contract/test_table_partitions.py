"""Partitions of a table of Iceberg: each file has those of its commit, and readers that filter find all its rows."""

import json
import subprocess
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from compactor.adapters.iceberg.data_files import live_data_files
from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import open_catalog
from compactor.cli.ui.failures import ExitCode
from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.errors import OperatorError
from compactor.core.partitions import PartitionValues, parse_fields
from compactor.engines.partitioned.buckets import bucket_of
from compactor.ops.verify.table_files import differing
from compactor.schema.schema import Column, SchemaVersion
from compactor.table.catalog import FilePartition, TableChange, TableFile, TableHead
from compactor.table.standing import ListedTable
from compactor.wiring import engines
from tests.support.engine_workspace import schema_file
from tests.support.extras import NATIVE, ON_SPARK
from tests.support.iceberg_tables import NAME, client, rest_place, sql_place, written
from tests.support.rest_catalog import FOR_SPARK, SPARK_OF_CATALOG, RestCatalogServer
from tests.support.settings_files import write_settings
from tests.support.table_catalogs import OWNER
from tests.support.workspace import DAY, Workspace

KINDS = {"ts": "timestamp", "who": "string", "n": "long"}
SCHEMA = SchemaVersion(
    version=1,
    created_at=datetime(2026, 1, 2, tzinfo=UTC),
    manifest_id="m",
    columns=tuple(
        Column(key=name, name=name, added_in=1, type=kind, field_id=at)
        for at, (name, kind) in enumerate(KINDS.items(), 1)
    ),
)
HOSTILE = "../a/b #?%2F;é€😀\n"
DAY_AND_BUCKET = ("event_day = day(ts)", "who_bucket = bucket(who, 8)")
ROWS = [
    {"ts": datetime(1969, 12, 31, 23, 30, tzinfo=UTC), "who": "a", "n": 1},
    {"ts": datetime(2025, 9, 30, 7, 59, tzinfo=UTC), "who": "é€😀", "n": -5},
    {"ts": None, "who": None, "n": None},
]


@pytest.fixture(params=["sql", pytest.param("rest", marks=pytest.mark.full)])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> IcebergTable:
    """An empty place for a table, in each catalog."""
    if request.param == "sql":
        return client(sql_place(tmp_path))
    server = request.getfixturevalue("rest_catalog")
    return client(rest_place(server.url), f"lake.partitions_{uuid.uuid4().hex}")


def loaded(table: IcebergTable) -> Table:
    """The table as another program opens it."""
    return open_catalog(table.place).load_table(table.name)


def named(file: TableFile, fields: Sequence[str], values: PartitionValues) -> TableFile:
    """A file as the ledger tells it, with its partition."""
    ids = {column.key: column.field_id for column in SCHEMA.columns}
    partition = tuple(
        FilePartition(field.name, field.transform, ids[field.key], KINDS[field.key], field.buckets, value)
        for field, value in zip(parse_fields(fields), values, strict=True)
    )
    return TableFile(file.uri, file.size_bytes, file.records, file.date, partition)


def values_of(row: dict[str, object]) -> PartitionValues:
    moment, who = row["ts"], row["who"]
    day = moment.date().isoformat() if isinstance(moment, datetime) else None
    return day, str(bucket_of(who, 8)) if who is not None else None


def committed(table: IcebergTable, *files: TableFile, removed: Sequence[str] = ()) -> TableHead:
    head = table.head() or table.create(OWNER, SCHEMA)
    table.commit(head, TableChange(head.fence + 1, files, tuple(removed)))
    after = table.head()
    assert after is not None
    return after


def test_values_of_iceberg(table: IcebergTable, tmp_path: Path) -> None:
    """A file has the values that Iceberg's own transforms give to its rows, and filters on columns find it by them."""
    files = [
        named(written(tmp_path / f"{at}.parquet", SCHEMA, [row]), DAY_AND_BUCKET, values_of(row))
        for at, row in enumerate(ROWS)
    ]
    committed(table, *files)
    found = loaded(table)
    spec, schema = found.spec(), found.schema()
    assert [field.name for field in spec.fields] == ["file_date", "event_day", "who_bucket"]
    snapshot = found.current_snapshot()
    assert snapshot is not None
    for entry, row in zip(live_data_files(found.io, snapshot), ROWS, strict=True):
        micros = None if row["ts"] is None else int(row["ts"].timestamp()) * 1_000_000  # type: ignore[attr-defined]
        for at, source in ((1, micros), (2, row["who"])):
            transform = spec.fields[at].transform
            kind = schema.find_type(spec.fields[at].source_id)
            assert entry.partition[at] == transform.transform(kind)(source)
    for filtered, rows in (
        ("ts < '1970-01-01T00:00:00+00:00'", 1),
        ("ts >= '2025-09-30T07:00:00+00:00' and ts < '2025-09-30T08:00:00+00:00'", 1),
        ("who = 'é€😀'", 1),
        ("ts is null", 1),
        ("ts = '2025-09-29T07:00:00+00:00'", 0),
    ):
        scan = found.scan(filtered)
        assert (scan.to_arrow().num_rows, len(list(scan.plan_files()))) == (rows, rows), filtered


def test_partitions_that_change(table: IcebergTable, tmp_path: Path) -> None:
    """Files of other partitions, and of none, are in one table and even in one commit; each stays as it was written."""
    row = ROWS[1]
    plain, other, too_many, rebuilt = (written(tmp_path / f"{name}.parquet", SCHEMA, [row]) for name in "abcd")
    committed(table, plain)
    by_hour = named(other, ["hour(ts)", "identity(n)"], ("2025-09-30-07", "-5"))
    committed(table, too_many, by_hour)
    committed(table, named(rebuilt, DAY_AND_BUCKET, values_of(row)), removed=[by_hour.uri])
    found = loaded(table)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    by_spec = {entry.file_path: entry.spec_id for entry in live_data_files(found.io, snapshot)}
    assert by_spec == {plain.uri: 1, too_many.uri: 1, rebuilt.uri: 3}
    assert found.spec().spec_id == 3
    assert snapshot.summary["total-records"] == "3"
    assert found.scan("ts = '2025-09-30T07:59:00+00:00' and who = 'é€😀'").to_arrow().num_rows == 3
    assert {file.date for file in table.live_files()} == {plain.date}
    committed(table, named(other, ["hour(ts)", "identity(n)"], ("2025-09-30-07", "-5")))
    assert loaded(table).spec().spec_id == 2  # not a second time


def test_columns_that_cannot_tell(table: IcebergTable, tmp_path: Path) -> None:
    """Iceberg knows no day of a text: such a file is in the partition of its date alone, and readers find its rows."""
    file = written(tmp_path / "a.parquet", SCHEMA, [ROWS[1]])
    partition = (FilePartition("who_day", "day", 2, "string", 0, "2025-09-30"),)
    committed(table, TableFile(file.uri, file.size_bytes, 1, file.date, partition))
    assert loaded(table).spec().spec_id == 1
    assert loaded(table).scan("who = 'é€😀'").to_arrow().num_rows == 1


def test_partitions_of_another_program(table: IcebergTable, tmp_path: Path) -> None:
    """Partitions that a person set are not overwritten."""
    head = committed(table, written(tmp_path / "a.parquet", SCHEMA, [ROWS[0]]))
    with loaded(table).update_spec() as update:
        update.add_identity("n")
    file = written(tmp_path / "b.parquet", SCHEMA, [ROWS[0]])
    with pytest.raises(OperatorError, match="its partitions are not by file_date"):
        table.commit(table.head() or head, TableChange(2, (file,)))


def test_another_partition_is_a_discrepancy(table: IcebergTable, tmp_path: Path) -> None:
    """The table tells the values of each file, and verification compares them with the commit."""
    fields, values = ["hour(ts)", "identity(who)", "bucket(n, 4)"], ("2025-09-30-07", "é€😀", None)
    file = named(written(tmp_path / "a.parquet", SCHEMA, [{**ROWS[1], "n": None}]), fields, values)
    typed = named(written(tmp_path / "b.parquet", SCHEMA, [ROWS[1]]), ["identity(n)"], ("-5",))
    plain = written(tmp_path / "c.parquet", SCHEMA, [ROWS[1]])
    committed(table, file, typed, plain)
    live = {each.uri: each for each in table.live_files()}
    assert [live[each.uri].values for each in (file, typed, plain)] == [values, None, ()]
    listed = ListedTable(name=table.name, catalog=lambda: table, late_seconds=1)

    def faults(**said: object) -> list[str]:
        known = {"partition": list(values), **said}
        staged = StagedFile(staged="", final=file.uri, rows=file.records, size_bytes=file.size_bytes, **known)  # type: ignore[arg-type]
        commit = Commit.model_construct(manifest_id="m", date=file.date)
        return [each.found for each in differing(listed, commit, staged, live[file.uri])]

    assert faults() == []
    assert faults(partition=["2025-09-30-08", "é€😀", None]) == [f"in table {table.name}: another one"]
    assert faults(partition=[None] * 3, holds_others=True) == [f"in table {table.name}: another one"]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A job whose output has partitions in a table; nothing is planned."""
    NATIVE.need()
    monkeypatch.setattr(engines, "MAX_PARTITIONS", 2)
    place = sql_place(tmp_path)
    (tmp_path / "columns.toml").write_text(schema_file({"ts": "timestamp", "who": "string"}))
    config = write_settings(
        tmp_path,
        output={"partition_by": list(DAY_AND_BUCKET)},
        schema={"file": f"{tmp_path}/columns.toml"},
        table={"catalog": "sql", "uri": place.uri, "warehouse": place.warehouse, "name": NAME},
        stream={"source": "listing"},
        convert={"engine": "native"},
    )
    (tmp_path / "raw").mkdir()
    return Workspace(tmp_path, config)


def compacted(workspace: Workspace, name: str, lines: Sequence[dict[str, object]]) -> None:
    (workspace.root / "raw" / f"{DAY}-{name}.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    workspace.plan()
    result = workspace.call("run", "--once")
    assert result.exit_code == ExitCode.DONE, result.output


@pytest.mark.full
def test_a_job_with_partitions(workspace: Workspace) -> None:
    """Commands agree with the table, which is the same if it is made again, over a change of the settings as well."""
    late = [{"ts": f"2025-09-{day:02d}T05:00:00Z", "who": "a"} for day in (1, 1, 2, 2, 3, 4)]
    compacted(workspace, "one", late)
    workspace.config.write_text(workspace.config.read_text().replace("who_bucket = bucket(who, 8)", "identity(who)"))
    compacted(workspace, "two", [*late[:2], {"who": HOSTILE}])
    found = open_catalog(sql_place(workspace.root)).load_table(NAME)
    assert {len(entry.partition) for entry in entries(found)} == {1, 3}
    assert found.scan("ts = '2025-09-03T05:00:00+00:00'").to_arrow().num_rows == 1
    assert found.scan(EqualTo("who", HOSTILE)).to_arrow().num_rows == 1
    before = {entry.file_path: repr(entry.partition) for entry in entries(found)}
    open_catalog(sql_place(workspace.root)).drop_table(NAME)
    assert workspace.call("table", "repair").exit_code == ExitCode.DONE
    again = open_catalog(sql_place(workspace.root)).load_table(NAME)
    assert {entry.file_path: repr(entry.partition) for entry in entries(again)} == before
    report, code = workspace.json("verify", "--deep")
    assert (code, report["discrepancies"], report["rows"]) == (ExitCode.DONE, [], 9)


def entries(found: Table) -> list[DataFile]:
    snapshot = found.current_snapshot()
    assert snapshot is not None
    return list(live_data_files(found.io, snapshot))


IN_SPARK = (
    SPARK_OF_CATALOG
    + """
filters = ["true", "ts < '1970-01-01'"]
filters += ["ts >= '2025-09-30 07:00' and ts < '2025-09-30 08:00'", "who = 'é€😀'", "n = -5"]
rows = [spark.table(name).where(each).count() for each in filters]
partitions = spark.table(name + ".partitions").selectExpr("spec_id", "file_count").collect()
print(json.dumps([rows, sorted([row.spec_id, row.file_count] for row in partitions)]))
"""
)


@pytest.mark.large
@pytest.mark.timeout(1800)
@ON_SPARK.needed
def test_spark_prunes_by_them(rest_catalog: RestCatalogServer, tmp_path: Path) -> None:
    """Spark finds the rows of each filter, in files of all specifications."""
    table = client(rest_place(rest_catalog.url), f"lake.pruned_{uuid.uuid4().hex}")
    files = [written(tmp_path / f"{at}.parquet", SCHEMA, [row]) for at, row in enumerate([*ROWS, *ROWS, ROWS[1]])]
    named_so = [named(file, DAY_AND_BUCKET, values_of(row)) for file, row in zip(files, ROWS, strict=False)]
    committed(table, *files[3:6])
    committed(table, named(files[6], ["hour(ts)", "identity(n)"], ("2025-09-30-07", "-5")), *named_so)
    jars = ",".join(str(path) for path in FOR_SPARK.glob("*.jar"))
    command = [sys.executable, "-c", IN_SPARK, jars, rest_catalog.url, f"lake.{table.name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    rows, partitions = json.loads(done.stdout.splitlines()[-1])
    assert rows == [7, 2, 3, 3, 3]
    assert [spec for spec, _ in partitions] == [1, 2, 3, 3, 3]

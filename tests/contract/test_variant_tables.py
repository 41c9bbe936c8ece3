"""Columns of variants in a table of version 3 of the format."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.iceberg.data_files import live_data_files
from compactor.adapters.iceberg.opening import open_catalog
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.table_records import MergedPart
from compactor.core.errors import OperatorError, SettingsError
from compactor.engines.parquet_files import parquet_facts
from compactor.engines.variant_footers import parquet_writer
from compactor.schema.schema import RESCUED_COLUMN, RESCUED_TYPE, Column, SchemaVersion
from compactor.schema.variants.binary_form import encode
from compactor.schema.variants.json_values import parse
from compactor.table.catalog import TableChange
from compactor.table.merging.writing import MergedFiles
from tests.support.iceberg_tables import NAME, client, sql_place, written
from tests.support.table_catalogs import DATE, OWNER, version

SCHEMA = SchemaVersion(
    version=1,
    created_at=version(1).created_at,
    manifest_id="m",
    columns=(
        Column(key="id", name="id", added_in=1, type="long", field_id=1),
        Column(key="v", name="v.x", added_in=1, type="variant", field_id=2),
        Column(key=None, name=RESCUED_COLUMN, added_in=1, type=RESCUED_TYPE, field_id=3),
        Column(key="last", name="last", added_in=1, field_id=4),
    ),
)


def variant(text: str) -> dict[str, bytes]:
    """A variant as Arrow holds it."""
    return dict(zip(("metadata", "value"), encode(parse(text)), strict=True))


ROWS = [
    {"id": 1, "v.x": variant('{"a":[1,2.50]}'), RESCUED_COLUMN: [("k", "v")], "last": "x"},
    {"id": 2, "v.x": None, RESCUED_COLUMN: None, "last": None},
]


def test_a_table_with_variants(tmp_path: Path) -> None:
    """The type is that of the schema; files say what is a variant, and no bounds are kept of it."""
    table = client(sql_place(tmp_path), format_version=3)
    head = table.create(OWNER, SCHEMA)
    file = written(tmp_path / "a.parquet", SCHEMA, ROWS)
    table.commit(head, TableChange(1, (file,)))
    found = open_catalog(sql_place(tmp_path)).load_table(NAME)
    assert str(found.schema().find_type("v.x")) == "variant"
    assert json.loads(found.metadata.schema().model_dump_json())["fields"][-3]["type"] == "variant"
    snapshot = found.current_snapshot()
    assert snapshot is not None
    [entry] = live_data_files(found.io, snapshot)
    assert (entry.record_count, entry.null_value_counts[4]) == (2, 1)
    assert 2 not in entry.lower_bounds.keys() | entry.upper_bounds.keys()
    assert entry.lower_bounds.keys() >= {1, 4}


@pytest.mark.parametrize("comes_first", [False, True])
def test_columns_that_are_called_as_halves(tmp_path: Path, comes_first: bool) -> None:
    """Have no statistics, which would be those of both; and a variant has as many values as there are rows."""
    half = Column(key="h", name="v.x.value", added_in=1, type="long", field_id=5)
    columns = (half, *SCHEMA.columns) if comes_first else (*SCHEMA.columns, half)
    schema = SCHEMA.model_copy(update={"columns": columns})
    table = client(sql_place(tmp_path), format_version=3)
    head = table.create(OWNER, schema)
    file = written(tmp_path / "a.parquet", schema, [{**row, "v.x.value": 7} for row in ROWS])
    table.commit(head, TableChange(1, (file,)))
    found = open_catalog(sql_place(tmp_path)).load_table(NAME)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    [entry] = live_data_files(found.io, snapshot)
    assert entry.value_counts == {**dict.fromkeys(entry.value_counts, 2), 2: 2}
    assert 5 not in entry.value_counts.keys() | entry.null_value_counts.keys() | entry.lower_bounds.keys()
    assert {1, 4} <= entry.value_counts.keys()


def test_other_formats_have_none(tmp_path: Path) -> None:
    """A table of version 2 refuses the column."""
    table = client(sql_place(tmp_path))
    with pytest.raises(SettingsError, match=r"expected 3, as the column 'v\.x' of schema version 1 is a variant"):
        table.create(OWNER, SCHEMA)


def test_files_that_do_not_say_it(tmp_path: Path) -> None:
    """A struct without an id is none of the columns."""
    table = client(sql_place(tmp_path), format_version=3)
    head = table.create(OWNER, SCHEMA)
    file = written(tmp_path / "a.parquet", SCHEMA, ROWS)
    columns = pq.read_schema(tmp_path / "a.parquet")
    plain = pa.schema([each.remove_metadata() if each.name == "v.x" else each for each in columns])
    pq.write_table(pq.read_table(tmp_path / "a.parquet").cast(plain), tmp_path / "b.parquet")
    size = (tmp_path / "b.parquet").stat().st_size
    other = type(file)((tmp_path / "b.parquet").as_uri(), size, 2, DATE)
    with pytest.raises(OperatorError, match="columns without field ids"):
        table.commit(head, TableChange(1, (other,)))


def turn_halves(path: Path) -> None:
    """Write a file anew with the halves of its variants in the other order: engines differ in it."""
    rows = pq.read_table(path).combine_chunks()
    at = rows.schema.get_field_index("v.x")
    column = rows.column(at).combine_chunks()
    fields = list(column.type)[::-1]
    turned = pa.StructArray.from_arrays(
        [column.field(each.name) for each in fields], fields=fields, mask=column.is_null()
    )
    rows = rows.set_column(at, rows.schema.field(at).with_type(turned.type), turned)
    with path.open("wb") as sink, parquet_writer(sink, rows.schema) as writer:
        writer.write_table(rows)


@pytest.mark.parametrize("turned", [0, 1])
def test_merged_files(tmp_path: Path, turned: int) -> None:
    """Have the variants of both, and say that these are some."""
    older = SCHEMA.model_copy(update={"columns": SCHEMA.columns[:1]})
    paths = [str(tmp_path / f"{name}.parquet") for name in "abc"]
    files = [written(Path(path), SCHEMA, ROWS) for path in paths[:2]] + [written(Path(paths[2]), older, [{"id": 3}])]
    turn_halves(Path(paths[turned]))
    parts = [
        MergedPart(
            manifest_id="m", date=DATE, uri=file.uri, rows=file.records, size_bytes=file.size_bytes, schema_version=1
        )
        for file in files
    ]
    target = str(tmp_path / "merged.parquet")
    MergedFiles(LocalStore(), "snappy").write(target, parts, paths)
    assert "(Variant(1))" in str(pq.ParquetFile(target).schema)
    assert parquet_facts(LocalStore(), target).types[-3] == "variant"
    read = pq.read_table(target).column("v.x").to_pylist()
    assert read == [*[ROWS[0]["v.x"], None] * 2, None]

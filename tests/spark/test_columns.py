"""Keys of any kind become columns that other readers take, and none is lost."""
# ruff: noqa: E501 - tables read best in full lines

import gzip
import re

import duckdb
import orjson
import pytest

from tests.support.parquet_ids import field_ids

KEYS = (
    "id", "ID", "Id", "a.b", "a b", " a", "a,b", "a;b", "{a}", "(a)", "a=b", "a\tb", "a\nb", '"', "'", "`", "``a`b", "",
    "_source_file", "_metadata", "_rescued_data", "_corrupt_record", "\0corrupt", "corrupt", "corrupt'", "value", "path",
    "origin", "c0", "c1", "é", "É", "日本", "😀", "$a", "a\\b", "a\\", "%", "*", "a[0]", "a:b", "x" * 250, "x" * 250 + "y",
)  # fmt: skip


def line(number: int, keys: tuple[str, ...] = KEYS) -> bytes:
    return orjson.dumps({key: f"{number}/{index}" for index, key in enumerate(keys)})


@pytest.mark.parametrize(
    ("engine", "names"),
    [
        ("spark", "safe"),
        ("native", "safe"),
        ("native", "exact"),
        pytest.param("spark", "exact", marks=pytest.mark.full),
    ],
    indirect=["engine"],
)
def test_every_key_has_a_column_of_its_own(new_workspace, names):
    """Whatever a key is called, its values are under one column, and pyarrow and DuckDB read them there."""
    workspace = new_workspace(schema={"names": names, "metadata_columns": ["_source_file", "_manifest_id"]})
    compacted = workspace.compact({"a": line(1) + b"\n" + line(2), "b": line(3, KEYS[::-1])})
    expected = [{key: f"{number}/{index}" for index, key in enumerate(KEYS)} for number in (1, 2)]
    expected.append({key: f"3/{index}" for index, key in enumerate(KEYS[::-1])})
    assert sorted(compacted.records, key=lambda record: record["id"]) == sorted(expected, key=lambda each: each["id"])
    columns = {column.key: column.name for column in workspace.app.registry.latest().columns}
    if names == "exact":
        assert all(columns[key] == key for key in KEYS if key not in {"", "_source_file", "_rescued_data"})
    (output,) = compacted.commit.outputs
    found = duckdb.sql(f"SELECT * FROM read_parquet('{output.final}')").fetchall()  # noqa: S608 - a name of our own
    assert sorted(row[2] for row in found) == ["1/0", "2/0", f"3/{len(KEYS) - 1}"]
    if names == "safe":
        assert all(re.fullmatch("[a-z0-9_]{1,255}", name) for name in columns.values())


def test_a_key_of_the_last_line_of_the_last_file_is_a_column(workspace):
    """A key that is seen once, at the very end, has a column with its one value; later manifests have it as well."""
    files = {f"{number:02d}": b'{"a":1}\n' * 50 for number in range(12)}
    files["99"] = b'{"a":1}\n' * 50 + b'{"a":1,"late":{"x" : 1.10}}'
    rows = workspace.compact(files).rows
    assert [row["late"] for row in rows if row["late"] is not None] == ['{"x" : 1.10}']
    assert len(rows) == 13 * 50 + 1
    assert workspace.compact({"b": b'{"a":2}'}, "later").rows == [{"a": "2", "late": None}]


def canonical(record: dict) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)


def test_long_keys_and_floods_of_keys_are_rescued_beside_good_neighbours(new_workspace):
    """Thousands of keys without a column, and keys longer than Spark reads: every line is a row with all its values."""
    workspace = new_workspace(schema={"max_columns": 4, "metadata_columns": ["_source_file"]}, columns={"n": "long"})
    flood = {"id": "flood", "n": "no number", **{f"k{number}": f"{number}.10" for number in range(2_000)}}
    odd = {"id": "odd", "l" * 60_000: "long", "": "empty", 'q"\\é\n': "[1 ,2]", "rescued": "taken", "nothing": None}
    lines = [orjson.dumps(flood), orjson.dumps(odd), b'{"id":"twice","t":1,"t":{"a" : 1e400}}', b'{"n":5}', b"no json"]
    data = b"\n".join(lines)
    good = b'{"id":"good","n":7}\n{"id":"better","k1":1.10}'
    compacted = workspace.compact({"a": good, "b.gz": gzip.compress(data), "c": data})
    expected = [
        flood,
        {key: value for key, value in odd.items() if value},
        {"id": "twice", "t": '{"a" : 1e400}'},
        {"n": 5},
    ]
    expected = [*expected * 2, {"id": "good", "n": 7}, {"id": "better", "k1": "1.10"}]
    assert sorted(map(canonical, compacted.records)) == sorted(map(canonical, expected))
    assert len(compacted.rejects) == 2
    assert len([column for column in workspace.app.registry.latest().columns if column.key is not None]) == 4
    assert workspace.compact({"later": data}, "later").records


def test_keys_beyond_the_limit_are_rescued(new_workspace):
    """What has no column keeps its key and its text in the rescued data, under whatever gathering."""
    workspace = new_workspace(schema={"max_columns": 2}, stream={"manifests_in_flight": 1})
    lines = [b'{"a":1,"b":2,"c":3.10,"D d":"x","":[1 ,2]}', b'{"a":4}', b'{"c":null}', b'{"c":"","a":null}']
    rows = workspace.compact({"f": b"\n".join(lines)}).rows
    found = {(row["a"], row["b"], tuple(sorted(row["_rescued_data"] or ()))) for row in rows}
    assert found == {
        ("1", "2", (("", "[1 ,2]"), ("D d", "x"), ("c", "3.10"))),
        ("4", None, ()),
        (None, None, ()),
        (None, None, (("c", ""),)),
    }
    assert sum(row["_rescued_data"] is None for row in rows) == 2


@pytest.mark.parametrize("compression", ["snappy", pytest.param("zstd", marks=pytest.mark.full)])
def test_files_have_the_field_ids_of_the_registry(new_workspace, compression):
    """Each column keeps its id over versions, and so do metadata columns and the entries of rescued data."""
    metadata = ["_source_file", "_processed_at", "_manifest_id", "file_date"]
    workspace = new_workspace(
        schema={"metadata_columns": metadata}, output={"compression": compression}, columns={"n": "long", "d": "date"}
    )
    first = workspace.compact({"a": b'{"n":1,"d":"no date"}\n{"n":2,"x":"y"}'})
    second = workspace.compact({"b": b'{"later":1,"d":"2026-01-02"}'}, "later")
    ids = {
        "_source_file": 10_000_001,
        "_processed_at": 10_000_002,
        "_manifest_id": 10_000_003,
        "file_date": 10_000_004,
        "n": 1,
        "d": 2,
        "x": 3,
        "_rescued_data": 4,
        "_rescued_data.key": 10_000_101,
        "_rescued_data.value": 10_000_102,
    }
    (one,), (other,) = first.commit.outputs, second.commit.outputs
    assert field_ids(one.final) == ids
    assert field_ids(other.final) == {**ids, "later": 5}
    assert {str(row["file_date"]) for row in (*first.rows, *second.rows)} == {first.commit.date}
    workspace.check()


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
@pytest.mark.parametrize("discovery", ["full", "declared"])
def test_rows_with_few_of_many_keys_are_made_in_python(new_workspace, monkeypatch, discovery):
    """Every value is in its column or rescued, and Spark's JVM makes no row: it takes as long for each null."""
    monkeypatch.setattr("compactor.adapters.spark.engine.convert", None)
    columns = {f"k{number}": "long" if number % 2 else "string" for number in range(80)}
    workspace = new_workspace(columns=columns, input={"discovery": discovery})
    lines = [b'{"k%d":"%d"}' % (number % 80, number) for number in range(300)]
    lines += [b'{"k1":"x"}', b"no json", b"", b'{"new":1, "k2":null}']
    compacted = workspace.compact({"a": b"\n".join(lines), "b.gz": gzip.compress(b'{"k3":3}')})
    rows = [{name: value for name, value in row.items() if value is not None} for row in compacted.rows]
    assert len(rows) == 303
    assert [row for row in rows if "k5" in row] == [{"k5": number} for number in range(5, 300, 80)]
    assert [row["k6"] for row in rows if "k6" in row] == [f"{number}" for number in range(6, 300, 80)]
    assert [row for row in rows if "_rescued_data" in row] == [{"_rescued_data": [("k1", "x")]}]
    assert [row for row in rows if "new" in row] == [{"new": "1"}]
    assert {"k3": 3} in rows
    assert compacted.report("a").rejects == {"invalid_json": 1}

"""The corpus of files as services write them: rows, types and rejects, by both engines."""

import json
import tomllib

import pytest

from compactor.schema.column_types import MAX_LEVELS
from compactor.settings.compact_paths import Options
from compactor.telemetry.meter import Meter
from compactor.wiring.suggesting import suggested_file
from tests.support.record_shapes import shapes

SHAPES = {shape.name: shape for shape in shapes()}


@pytest.mark.parametrize(
    ("engine", "how"),
    [
        ("spark", "path"),
        ("native", "path"),
        ("native", "auto"),
        # Where records are is recognised before either engine reads them.
        pytest.param("spark", "auto", marks=pytest.mark.full),
    ],
    indirect=["engine"],
)
def test_every_shape_gives_its_rows(new_workspace, how):
    """Files with the same path and keys are one manifest. Their values are compared one by one, and by `verify`."""
    groups = {}
    for shape in SHAPES.values():
        if how == "path" or shape.is_recognised:
            groups.setdefault((shape.path if how == "path" else how, shape.keep), []).append(shape)
    for (path, keep), of_group in groups.items():
        workspace = new_workspace(input={"format": "json", "records": path, "keep": list(keep)})
        compacted = workspace.compact({shape.name: shape.data for shape in of_group})
        for shape in of_group:
            report = compacted.report(shape.name)
            assert (report.status, report.records) == (shape.status, len(shape.records)), (shape.name, report.detail)
            assert report.record_path == (shape.path if shape.status == "compacted" else "")
            rejects = [each["reason"] for each in compacted.rejects if each["source_uri"].endswith(f"/{shape.name}")]
            assert rejects == list(shape.refused)
        expected = [record for shape in of_group for record in shape.records]
        assert in_order(parsed(compacted.records, expected)) == in_order(expected)


def parsed(found, expected):
    """Rows with values parsed, but for keys that have text in the records."""
    texts = {key for record in expected for key, value in record.items() if isinstance(value, str)}
    return [{key: value if key in texts else json.loads(value) for key, value in row.items()} for row in found]


def in_order(records):
    """Without nulls, which are nowhere in the rows."""
    there = ({key: value for key, value in each.items() if value is not None} for each in records)
    return sorted(json.dumps(each, sort_keys=True) for each in there)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.types])
def test_columns_have_their_types(new_workspace, name):
    shape = SHAPES[name]
    workspace = new_workspace(
        columns=shape.types,
        schema={"names": "exact"},
        input={"format": "json", "records": shape.path, "keep": list(shape.keep)},
    )
    compacted = workspace.compact({name: shape.data})
    assert len(compacted.rows) == len(shape.records)
    assert [{key: row[key] for key in shape.values} for row in compacted.rows].count(shape.values) > 0
    assert compacted.commit.rescued_values == 0


NESTED_SHAPES = (
    "cloudtrail.json.gz",
    "otlp.jsonl",
    "bus.jsonl",
    "waf.log",
    "kubernetes.log",
    "segment.log",
    "github.log",
)


@pytest.mark.parametrize("name", NESTED_SHAPES)
def test_suggested_nested_types_hold_every_record(new_workspace, tmp_path, name):
    """Their values are compared one by one by `verify`, and nothing is rescued."""
    shape = SHAPES[name]
    (tmp_path / name).write_bytes(shape.data)
    options = Options(records=shape.path or None, keep=",".join(shape.keep), names="exact")
    suggested = suggested_file([str(tmp_path / name)], options, None, None, Meter(), levels=MAX_LEVELS)
    columns = {each["name"]: each["type"].replace(" ", "") for each in tomllib.loads(suggested)["columns"]}
    assert any(kind.startswith(("struct<", "list<")) for kind in columns.values())
    workspace = new_workspace(
        columns=columns,
        schema={"names": "exact"},
        input={"format": "json", "records": shape.path, "keep": list(shape.keep)},
    )
    compacted = workspace.compact({name: shape.data})
    assert (len(compacted.rows), compacted.commit.rescued_values) == (len(shape.records), 0)


def test_a_reject_has_what_would_be_carried(new_workspace):
    """With its number, its place and its exact bytes, so that the line can be redriven as it would have been."""
    workspace = new_workspace(
        input={"format": "json", "records": "logEvents[]", "keep": ["owner"], "max_line_bytes": 24}
    )
    data = b'{"owner":"1","logEvents":[{"a":1},\n{"b" 2}, 7, {"c":"ccccccccccccccccccccccccccc"}]}'
    compacted = workspace.compact({"a.json": data})
    assert compacted.records == [{"owner": "1", "a": "1"}]
    assert [(each["line_number"], each["reason"], each["raw"], each["kept"]) for each in compacted.rejects] == [
        (2, "invalid_json", b'{"b" 2}', '{"owner":"1"}'),
        (3, "not_an_object", b"7", '{"owner":"1"}'),
        (4, "line_too_long", b'{"c":"cccccccccccccccccc', '{"owner":"1"}'),
        (4, "line_too_long", b'ccccccccc"}', '{"owner":"1"}'),
    ]
    assert all(data[each["byte_offset"] :].startswith(each["raw"]) for each in compacted.rejects)

"""Typed columns: Spark gives every text the value that the rules give it, and keeps as text what has none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pytest

from compactor.adapters.spark import conversion
from compactor.schema.column_types import canonical_text, parse_type, value_of
from compactor.wiring import operating, rebuilding
from tests.support.hostile_texts import HOSTILE_TEXTS

TYPES = {
    **{kind: kind for kind in ("string", "long", "double", "boolean", "date", "timestamp", "timestamp_ntz")},
    "objectid": "objectid",
    **{unit: f"timestamp {unit}" for unit in ("seconds", "milliseconds", "microseconds")},
    **{
        f"decimal_{precision}_{scale}": f"decimal({precision},{scale})"
        for precision, scale in ((18, 2), (38, 0), (38, 38), (38, 10), (1, 0), (5, 5), (9, 3))
    },
}
"""Columns by name, as `schema_file` takes them."""


@contextmanager
def session_conf(spark, **conf: str) -> Iterator[None]:
    """Other defaults of the session, for a while."""
    before = {name: spark.conf.get(name) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


HOSTILE_DEFAULTS = {
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.ansi.enabled": "true",
}


def is_token(text: str) -> bool:
    """Whether a text may stand in JSON without quotes."""
    try:
        token = json.loads(text, parse_constant=lambda _: "")
    except ValueError:
        return False
    return text == text.strip() and not isinstance(token, str | list | None)


def test_spark_and_the_rules_agree_on_every_text(new_workspace, spark):
    """Hundreds of texts at the limits, quoted and bare, in a column of each type: same value, or same text rescued."""
    lines = [orjson.dumps({"n": f"{at}", **dict.fromkeys(TYPES, text)}) for at, text in enumerate(HOSTILE_TEXTS)]
    lines += [
        f'{{"n":{at},{",".join(f"{json.dumps(name)}:{text}" for name in TYPES)}}}'.encode()
        for at, text in enumerate(HOSTILE_TEXTS)
        if is_token(text)
    ]
    with session_conf(spark, **HOSTILE_DEFAULTS):
        workspace = new_workspace(columns=TYPES)
        compacted = workspace.compact({"a": b"\n".join(lines)})
    kinds = {name: parse_type(*kind.split(" ")) for name, kind in TYPES.items()}
    rescued_values = 0
    for row in compacted.rows:
        text = HOSTILE_TEXTS[int(row["n"])]
        rescued = dict(row["_rescued_data"] or ())
        rescued_values += len(rescued)
        for name, kind in kinds.items():
            expected, found = value_of(text, kind), row[name]
            assert (found is None) == (expected is None), (text, name, expected, found)
            assert rescued.get(name) == (text if expected is None else None), (text, name)
            if expected is not None:
                assert canonical_text(found, kind) == canonical_text(expected, kind), (text, name)
    assert len(compacted.rows) == len(lines)
    assert compacted.commit.rescued_values == rescued_values > 3_000


def test_declared_types_without_inspection(new_workspace):
    """Typed columns and rescued values are the same where the keys of the schema file are trusted."""
    workspace = new_workspace(columns={"id": "long", "v": "decimal(9,2)"}, input={"discovery": "declared"})
    rows = workspace.compact({"a": b'{"v":1.10,"id":1}\n{"id":"x","v":1.105}\n{"id":null}'}).rows
    assert sorted((row["id"] or 0, f"{row['v']}", tuple(row["_rescued_data"] or ())) for row in rows) == [
        (0, "None", ()),
        (0, "None", (("id", "x"), ("v", "1.105"))),
        (1, "1.10", ()),
    ]


NESTED = {
    "id": "long",
    "tags": "list<string>",
    "actor": "struct<id:long,seen:timestamp,`full-name`:string>",
    "by": "map<string,list<decimal(9,2)>>",
}
NESTED_LINES = b"""
{"id":1,"tags":["a",7,null],"actor":{"id":5,"seen":"2026-01-02T03:04:05Z","full-name":"A B"},"by":{"x":[1.5,2]}}
{"id":2,"tags":[],"actor":{"id":"6","new":true},"by":{"x":["n/a"],"y":null}}
{"id":3,"tags":"none","actor":"{\\"id\\":7}","by":{"x":[],"x":[1]}}
{"id":4,"late":{"a":1}}
""".lstrip()


@pytest.mark.parametrize("partition_by", [[], ["id"]])
def test_lists_structs_and_maps(new_workspace, spark, partition_by):
    """Parts that fit are values, all others null with the whole text rescued; also in partitions, and after a loss."""
    workspace = new_workspace(
        columns=NESTED, output={"partition_by": [f"part = identity({key})" for key in partition_by]}
    )
    done = workspace.compact({"a": NESTED_LINES})
    seen, nothing = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), {"id": None, "seen": None, "full-name": None}
    rows = {row["id"]: (row["tags"], row["actor"], row["by"], dict(row["_rescued_data"] or ())) for row in done.rows}
    assert rows == {
        1: (
            ["a", "7", None],
            {"id": 5, "seen": seen, "full-name": "A B"},
            [("x", [Decimal("1.50"), Decimal(2)])],
            {},
        ),
        2: (
            [],
            {**nothing, "id": 6},
            [("x", [None]), ("y", None)],
            {"actor": '{"id":"6","new":true}', "by": '{"x":["n/a"],"y":null}'},
        ),
        3: (None, {**nothing, "id": 7}, [("x", [])], {"tags": "none", "by": '{"x":[],"x":[1]}'}),
        4: (None, None, None, {}),
    }
    assert done.commit.rescued_values == 4
    places = [file.final for file in done.commit.outputs]
    parts = ("get(tags, 1)", "actor.`full-name`", "get(by['x'], 0)")
    found = spark.read.parquet(*places).where("id = 1").selectExpr(*parts).collect()
    assert [tuple(row) for row in found] == [("7", "A B", Decimal("1.50"))]
    workspace.app.store.delete(places)
    scan = operating.rebuild_scanner(workspace.app).scan(("m",))
    rebuilding.rebuilder(workspace.app, lambda _: workspace.engine()).rebuild(scan)
    workspace.check()
    assert sorted(map(str, workspace.compacted().rows)) == sorted(map(str, done.rows))


@pytest.mark.parametrize("engine", ["spark"])
def test_without_typed_columns_nothing_is_added_to_the_plan(new_workspace, spark, monkeypatch):
    """Where all columns are strings, no value is looked at."""
    plans = []
    frames = type(spark.range(1))
    original = frames.coalesce

    def coalesce(frame, files):
        plans.append(frame._jdf.queryExecution().optimizedPlan().toString())
        return original(frame, files)

    monkeypatch.setattr(conversion, "_coalesces", lambda *_: True)
    monkeypatch.setattr(frames, "coalesce", coalesce)
    for number, kind in enumerate(("string", "long")):
        new_workspace(columns={"id": kind}).compact({"a": b'{"id":1,"v":2}'}, f"m{number}")
    assert [("RLIKE" in plan, "misfits" in plan) for plan in plans] == [(False, False), (True, True)]

"""Ranges of topics through the whole job, without brokers: planned, converted and verified."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.core.errors import SettingsError
from compactor.core.kafka.ranges import Topic
from compactor.ledger.accounts.reading import Scope
from compactor.ops.rebuild.scan import RebuildScope
from compactor.ops.redrive.scan import find_redrivable
from compactor.wiring.job.app import App
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = Topic("main", "events")

NATIVE.need()


@pytest.fixture
def log() -> MemoryKafka:
    return MemoryKafka()


def ids(root: Path) -> list[Any]:
    files = sorted((root / "o").rglob("*.parquet"))
    return sorted(each for path in files for each in pq.read_table(path)["id"].to_pylist())


def test_rows_of_a_topic(tmp_path: Path, log: MemoryKafka) -> None:
    """With tombstones, gaps and rejects; each counts as its own kind."""
    first, second = log.create(TOPIC, "one", 2)
    first.append(b'{"id": "a"}', None, b"no json")
    first.skip(2)
    second.append(b'{"id":\n"b"}')
    app = kafka_app(tmp_path, log)
    [planned] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["a", "b"]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rows, report.rejected_lines, report.blank_lines) == ([], 2, 1, 3)
    assert (report.tombstones, report.absent_offsets) == (1, 2)
    files = app.tracer.trace_manifest(planned.manifest_id).files
    counts = {file.uri: file.kafka for file in files}
    found = counts[f"{TOPIC}/0?from=0&to=5"]
    assert found is not None
    assert (found.tombstones, found.absent) == (1, 2)


FRAMED = b"\0\0\0\0\x07\x02a"


def test_values_of_a_schema_registry(tmp_path: Path, log: MemoryKafka) -> None:
    """A range without anything else is quarantined, and says so; beside records they are rejects."""
    first, second = log.create(TOPIC, "one", 2)
    first.append(FRAMED, None, FRAMED)
    second.append(FRAMED, b'{"id": "a"}')
    app = kafka_app(tmp_path, log)
    [planned] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["a"]
    framed, mixed = sorted(app.tracer.trace_manifest(planned.manifest_id).files, key=lambda file: file.uri)
    assert (framed.status, mixed.rejected_lines) == ("not_ndjson", 1)
    assert "the first reject looks like values of a schema registry (magic byte 0, schema 7)" in framed.detail


def test_lost_rows_are_made_again_from_a_topic_that_has_grown(tmp_path: Path, log: MemoryKafka) -> None:
    """Its end is another one by then, and that of the range is not."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', None, b'{"id": "b"}')
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    partition.append(b'{"id": "c"}')
    next((tmp_path / "o").rglob("*.parquet")).unlink()
    report = app.rebuilder().rebuild(app.rebuild_scanner().scan(RebuildScope()))
    assert (len(report.rebuilt), report.refused, report.discrepancies) == (1, [], [])
    assert ids(tmp_path) == ["a", "b"]


RECORDS = {"record_columns": ["key", "timestamp", "headers", "offset"]}
CLUSTER = {"clusters": {"main": {"bootstrap.servers": "none:1"}}}


def test_columns_of_what_records_have_beside_values(tmp_path: Path, log: MemoryKafka) -> None:
    """By setting. `verify --deep` compares them, and a rebuild makes the same; rejects keep their exact bytes."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', b"no json", None, b'{"id": "b"}')
    partition.more = {0: (b"k", 1_700_000_000_000, (("h", b"1"),)), 1: (b"x", 1, ()), 3: (None, None, ())}
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, **RECORDS})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    expected = [
        {
            "_kafka_key": "k",
            "_kafka_timestamp": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
            "_kafka_headers": '[["h","1"]]',
            "_kafka_offset": 0,
            "id": "a",
        },
        {"_kafka_key": None, "_kafka_timestamp": None, "_kafka_headers": "[]", "_kafka_offset": 3, "id": "b"},
    ]
    assert rows_of(tmp_path, expected[0]) == expected
    for _ in range(2):
        report = app.verifier(deep=True).verify_all()
        assert (report.discrepancies, report.rows, report.rejected_lines, report.inputs_gone) == ([], 2, 1, 0)
        next((tmp_path / "o").rglob("*.parquet")).unlink()
        made = app.rebuilder().rebuild(app.rebuild_scanner().scan(RebuildScope()))
        assert (len(made.rebuilt), made.refused, made.discrepancies) == (1, [], [])
        assert rows_of(tmp_path, expected[0]) == expected
    partition.more[0] = (b"other", 1_700_000_000_000, ())
    assert len(app.verifier(deep=True).verify_all().discrepancies) == 1


def test_redriven_lines_of_records_with_columns(tmp_path: Path, log: MemoryKafka) -> None:
    """Their number tells their offset. They cannot give themselves another one, or the key of another record."""
    [partition] = log.create(TOPIC, "one", 1)
    forged = b'{"id": "b", "_kafka_offset": 99, "_kafka_key": "admin", "long": "%s"}' % (b"x" * 300)
    partition.append(b'{"id": "a"}', None, forged)
    partition.more = {0: (b"k", None, ()), 2: (b"l", None, ())}
    kafka = {**CLUSTER, "record_columns": ["offset", "key"]}

    def app_with(max_line_bytes: int) -> App:
        of_topic = {"allowed_prefixes": ["kafka://main"], "max_line_bytes": max_line_bytes}
        return kafka_app(tmp_path, log, kafka=kafka, input=of_topic)

    app = app_with(100)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    app = app_with(1000)
    app.redriver().redrive(find_redrivable(app.state, Scope("rejects")))
    app.threaded_job(1).run(once=True)
    like = {"id": "", "_kafka_offset": 0, "_kafka_key": ""}
    expected = [{"id": "a", "_kafka_offset": 0, "_kafka_key": "k"}, {"id": "b", "_kafka_offset": 2, "_kafka_key": None}]
    for _ in range(2):
        assert rows_of(tmp_path, like) == expected
        report = app.verifier(deep=True).verify_all()
        assert (report.discrepancies, report.rows, report.inputs_gone) == ([], 2, 0)
        for path in (tmp_path / "o").rglob("*.parquet"):
            path.unlink()
        made = app.rebuilder().rebuild(app.rebuild_scanner().scan(RebuildScope()))
        assert (made.refused, made.discrepancies) == ([], [])


def test_keys_that_only_records_may_give(tmp_path: Path, log: MemoryKafka) -> None:
    """They never get a column of a type that values choose, so that the setting may follow later."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a", "_kafka_offset": "forged"}')
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    [path] = (tmp_path / "o").rglob("*.parquet")
    assert pq.read_table(path, columns=["_rescued_data"])["_rescued_data"].to_pylist() == [
        [("_kafka_offset", "forged")]
    ]
    partition.append(b'{"id": "b", "_kafka_offset": "forged"}')
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, "record_columns": ["offset"]})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    path.unlink()
    assert rows_of(tmp_path, {"id": "", "_kafka_offset": 0}) == [{"id": "b", "_kafka_offset": 1}]


def test_columns_of_records_of_text(tmp_path: Path, log: MemoryKafka) -> None:
    """Beside the captures of a pattern."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b"GET a", b"x", None, b"GET b")
    partition.more = {0: (b"k", None, ()), 1: (b"x", None, ()), 3: (b"l", None, ())}
    text = {"allowed_prefixes": ["kafka://main"], "format": "grok", "grok": {"pattern": "^%{WORD:verb} %{DATA:id}$"}}
    app = kafka_app(tmp_path, log, input=text, kafka={**CLUSTER, "record_columns": ["key"]})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    expected = [{"id": "a", "_kafka_key": "k"}, {"id": "b", "_kafka_key": "l"}]
    assert rows_of(tmp_path, expected[0]) == expected
    assert app.verifier(deep=True).verify_all().discrepancies == []


def test_a_column_of_records_that_is_of_another_type(tmp_path: Path, log: MemoryKafka) -> None:
    """It would be null in each row; the setting is refused."""
    (tmp_path / "schema.toml").write_text('[[columns]]\nname = "_kafka_offset"\ntype = "double"\n')
    schema = {"file": str(tmp_path / "schema.toml")}
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, **RECORDS}, schema=schema)
    with pytest.raises(SettingsError, match=r"kafka\.record_columns: _kafka_offset is of type long -> expected double"):
        app.threaded_job(1)


def rows_of(root: Path, like: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all files, with the columns of one, by id."""
    found = [
        row for path in (root / "o").rglob("*.parquet") for row in pq.read_table(path, columns=[*like]).to_pylist()
    ]
    return sorted(found, key=lambda row: row["id"])


def test_text_of_a_topic(tmp_path: Path, log: MemoryKafka) -> None:
    """The value of a record is a line. One of several lines does not match, rather than becoming another value."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b"GET a", None, b"GET b\nGET c", b"PUT d\n", b"x")
    text = {"allowed_prefixes": ["kafka://main"], "format": "grok", "grok": {"pattern": "^%{WORD:verb} %{DATA:id}$"}}
    app = kafka_app(tmp_path, log, input=text)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["a", "d"]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rejects_by_reason, report.blank_lines) == ([], {"no_match": 2}, 1)


def test_what_compaction_removes_later_is_no_discrepancy(tmp_path: Path, log: MemoryKafka) -> None:
    """The range can no longer be compared, as a deleted file cannot; its rows stay."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', b'{"id": "b"}')
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.inputs_compared, report.inputs_gone) == ([], 1, 0)
    del partition.records[0]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.inputs_compared, report.inputs_gone) == ([], 0, 1)
    assert ids(tmp_path) == ["a", "b"]


LINES = {"values": "lines", "record_columns": ["key", "offset"]}


def test_values_of_several_lines(tmp_path: Path, log: MemoryKafka) -> None:
    """By setting. Each line is a record of its own; all lines are accounted for, also when they are read again."""
    [partition] = log.create(TOPIC, "one", 1)
    values = (b'{"id": "a"}\n{"id": "b"}\r\n', None, b'{"id": "c"}', b'{"id": "d"}\nno json\n\n{"id": "e"}')
    partition.append(*values)
    partition.skip(1)
    partition.append(b'{"id":\n"f"}')
    partition.more = {0: (b"k", None, ()), 3: (b"l", None, ())}
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, **LINES})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    expected = [
        {"id": each, "_kafka_key": key, "_kafka_offset": offset}
        for each, key, offset in [("a", "k", 0), ("b", "k", 0), ("c", None, 2), ("d", "l", 3), ("e", "l", 3)]
    ]
    assert rows_of(tmp_path, expected[0]) == expected
    app = kafka_app(tmp_path, log)  # the setting is another one by now; the range keeps its own
    for _ in range(2):
        report = app.verifier(deep=True).verify_all()
        assert (report.discrepancies, report.rows, report.rejected_lines, report.inputs_compared) == ([], 5, 3, 1)
        assert (report.lines, report.blank_lines, report.tombstones, report.absent_offsets) == (11, 3, 1, 1)
        assert report.further_lines == 5
        next((tmp_path / "o").rglob("*.parquet")).unlink()
        made = app.rebuilder().rebuild(app.rebuild_scanner().scan(RebuildScope()))
        assert (len(made.rebuilt), made.refused, made.discrepancies) == (1, [], [])
        assert rows_of(tmp_path, expected[0]) == expected
    found = app.tracer.trace(f"{TOPIC}/0?offset=3")
    assert found.message == "offset 3 of topic id one is lines 5 to 8 of this range"
    assert [(each.line_number, each.first_offset, each.last_offset) for each in found.rejected] == [
        (6, 3, 3),
        (10, 5, 5),
        (11, 5, 5),
    ]
    assert app.tracer.trace(f"{TOPIC}/0?offset=2").message.endswith("is line 4 of this range")
    partition.records[2] = b'{"id": "c"}\n{"id": "c"}'
    assert len(app.verifier(deep=True).verify_all().discrepancies) == 2  # a row more, and rejects under other numbers


@pytest.mark.parametrize("planned", ["record", "lines"])
def test_a_planned_range_keeps_its_meaning(tmp_path: Path, log: MemoryKafka, planned: str) -> None:
    """Whatever the setting is when it is read, also by a redrive of it."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}\n{"id": "b"}', b'{"id": "c"}')
    kafka = {"record": {**CLUSTER, "record_columns": ["offset"]}, "lines": {**CLUSTER, **LINES}}
    app = kafka_app(tmp_path, log, kafka=kafka.pop(planned))
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    waiting = app.tracer.trace(f"{TOPIC}/0?offset=1")
    assert waiting.message.endswith("is line 2 of this range" if planned == "record" else "is in this range")
    [other] = kafka.values()
    app = kafka_app(tmp_path, log, kafka=other)
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == (["a", "b", "c"] if planned == "lines" else ["c"])
    assert app.verifier(deep=True).verify_all().discrepancies == []


def test_what_is_left_of_a_range_keeps_its_meaning(tmp_path: Path, log: MemoryKafka) -> None:
    """It is redriven as it was planned, and a trace counts its lines from its own first offset."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}\n{"id": "b"}', b'{"id": "c"}\n{"id": "d"}', b'{"id": "e"}\n{"id": "f"}')
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, **LINES})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    partition.remove_before(1)
    app.threaded_job(1).run(once=True)
    missing = app.tracer.trace(f"{TOPIC}/0?offset=2")
    assert missing.message.startswith("offset 2 of topic id one is in this range; missing: ")
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, "record_columns": ["offset"]})
    app.redriver().redrive(find_redrivable(app.state, Scope("files")))
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["c", "d", "e", "f"]
    found = app.tracer.trace(f"{TOPIC}/0?offset=2")
    assert (found.uri, found.message) == (
        f"{TOPIC}/0?from=1&to=3",
        "offset 2 of topic id one is lines 3 to 4 of this range",
    )
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rows, report.lines, report.further_lines) == ([], 4, 4, 2)


def test_lines_of_text_in_one_value(tmp_path: Path, log: MemoryKafka) -> None:
    """Each is matched by itself."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b"GET a\nGET b\nx\n", b"GET c")
    text = {"allowed_prefixes": ["kafka://main"], "format": "grok", "grok": {"pattern": "^%{WORD:verb} %{DATA:id}$"}}
    app = kafka_app(tmp_path, log, input=text, kafka={**CLUSTER, **LINES})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    expected = [{"id": "a", "_kafka_offset": 0}, {"id": "b", "_kafka_offset": 0}, {"id": "c", "_kafka_offset": 1}]
    assert rows_of(tmp_path, expected[0]) == expected
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rejects_by_reason) == ([], {"no_match": 1})


def test_rows_of_lines_have_to_tell_their_offset(tmp_path: Path, log: MemoryKafka) -> None:
    """Else nothing would tell which record a row is of."""
    with pytest.raises(SettingsError, match=r'kafka\.values: "lines" -> expected "offset" in kafka\.record_columns'):
        kafka_app(tmp_path, log, kafka={**CLUSTER, "values": "lines"})


def test_lines_of_a_range_with_more_offsets_than_parts(
    tmp_path: Path, log: MemoryKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace names the lines that an offset may have, and the offsets that a rejected line may be of."""
    monkeypatch.setattr("compactor.core.kafka.value_lines.MAX_PARTS", 2)
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', b'{"id": "b"}', b'{"id": "c"}\nno json', b'{"id": "d"}')
    app = kafka_app(tmp_path, log, kafka={**CLUSTER, **LINES})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    traces = [app.tracer.trace(f"{TOPIC}/0?offset={offset}") for offset in range(4)]
    assert [each.message.partition(" is ")[2] for each in traces] == [
        "line 1 of this range",
        "line 2 of this range",
        "among lines 3 to 4 of this range",
        "among lines 4 to 5 of this range",
    ]
    assert [(each.line_number, each.first_offset, each.last_offset) for each in traces[3].rejected] == [(4, 2, 3)]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.lines, report.further_lines) == ([], 5, 1)

"""A job with a schema file, in memory: types and rescued values from the first manifest on, and a schema that grows."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from compactor.core.documents.changes import Commit
from compactor.core.errors import SettingsError
from compactor.core.layout import ManifestKey
from compactor.job.report import batch_metrics
from compactor.wiring import streaming
from tests.support.harness import GOOD, Harness

FILE = "/w/columns.toml"
COLUMNS = """
columns = [
  {name = "id", type = "long"},
  {name = "amount", type = "decimal(9,2)"},
  {name = "at", type = "timestamp", key = "time", epoch = "seconds"},
  {name = "day", type = "date"},
  {name = "ok", type = "boolean"},
  {name = "x", type = "double"},
]
"""
LINES = (
    b'{"id": 1, "amount": 1.10, "time": "2026-01-02T03:04:05+01:00", "day": "2026-01-02", "ok": true, "x": -0}\n'
    b'{"id": "1.0", "amount": 1.105, "time": 1700000000, "day": "2023-02-29", "ok": "TRUE", "x": 1e400}\n'
    b'{"id": null, "late": [1, 2]}\n'
)


def typed_world(**schema: Any) -> Harness:
    harness = Harness(schema={"file": FILE, **schema})
    harness.store.put(FILE, COLUMNS.encode())
    return harness


def rows(harness: Harness, manifest_id: str) -> list[dict[str, Any]]:
    return [row for file in harness.commit(manifest_id).outputs for row in harness.table(file.final)]


def test_values_and_what_does_not_fit() -> None:
    """Values have their types; what does not fit is null and kept as it was written; verification agrees."""
    harness = typed_world()
    harness.deliver("m1", LINES)
    report = harness.run_once()
    assert (report.committed, report.rejected_lines) == (1, 0)
    first, second, third = rows(harness, "m1")
    at = datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
    assert list(first.values()) == [1, Decimal("1.10"), at, date(2026, 1, 2), True, -0.0, None, None]
    misfits = {"id": "1.0", "amount": "1.105", "day": "2023-02-29", "ok": "TRUE", "x": "1e400"}
    assert dict(second.pop("_rescued_data")) == misfits
    assert {name: value for name, value in second.items() if value is not None} == {
        "at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    }
    assert {name: value for name, value in third.items() if value is not None} == {"late": "[1, 2]"}
    assert harness.verification().discrepancies == []
    assert harness.commit("m1").rescued_values == len(misfits)
    assert harness.metrics.emitted[0]["ValuesRescued"] == len(misfits)


def test_rescued_values_of_a_batch() -> None:
    """The metric sums the values of all manifests of a batch."""
    harness = typed_world()
    results = harness.runner().run([harness.deliver("m1", LINES), harness.deliver("m2", LINES)])
    values = batch_metrics(results, retrying=0, seconds=1.0, target_file_bytes=1000)
    assert values["ValuesRescued"] == 10


def test_a_new_key_in_the_middle_of_a_stream() -> None:
    """A key that comes late makes the next version without a stop; one beyond the limit is rescued; all are found."""
    harness = Harness(schema={"max_columns": 2})
    runner = harness.runner()
    for number, line in enumerate([b'{"a": 1}', b'{"a": 2, "b": "x"}', b'{"b": 3, "c": 1.10}', b'{"c": 4}'], start=1):
        assert runner.run([harness.deliver(f"m{number}", line)]).failures == {}
    assert [harness.commit(f"m{number}").schema_version for number in range(1, 5)] == [1, 2, 3, 3]
    assert rows(harness, "m1") == [{"a": "1"}]
    assert rows(harness, "m2") == [{"a": "2", "b": "x"}]
    assert rows(harness, "m3") == [{"a": None, "b": "3", "_rescued_data": [("c", "1.10")]}]
    assert rows(harness, "m4") == [{"a": None, "b": None, "_rescued_data": [("c", "4")]}]
    newest = harness.app().registry.latest().columns[-1]
    assert (newest.name, newest.source_uri) == ("_rescued_data", "/w/raw/m3-0.ndjson")
    assert harness.verification().discrepancies == []


def test_a_schema_file_for_a_table_that_is_there() -> None:
    """Columns that are declared later append with their types; earlier files stay as they are."""
    harness = Harness()
    harness.deliver("m1", b'{"other": 1}')
    harness.run_once()
    later = typed_world()
    later.store, later.clock = harness.store, harness.clock
    later.store.put(FILE, COLUMNS.encode())
    later.deliver("m2", LINES)
    later.run_once()
    assert (later.commit("m1").schema_version, later.commit("m2").schema_version) == (1, 2)
    assert list(rows(later, "m2")[0])[:3] == ["other", "id", "amount"]
    assert later.verification().discrepancies == []


def test_a_file_that_contradicts_the_record() -> None:
    """A run whose schema file says otherwise than the record ends before it does anything, with every difference."""
    harness = Harness()
    harness.deliver("m1", b'{"id": 1, "x": 2}')
    harness.run_once()
    harness.deliver("m2", b'{"id": 1}')
    later = typed_world()
    later.store = harness.store
    later.store.put(FILE, COLUMNS.encode())
    before = [info.uri for info in harness.store.list("/w/")]
    with pytest.raises(SettingsError) as caught:
        streaming.service(later.app())  # which would start Spark if it got so far
    assert [fault.partition(" ->")[0] for fault in caught.value.faults] == [
        "schema.file: the column of key 'id': type 'long'",
        "schema.file: the column of key 'x': type 'double'",
    ]
    assert [info.uri for info in harness.store.list("/w/")] == before


@pytest.mark.parametrize(
    ("data", "expected"),
    [(None, 'schema.file: "/w/columns.toml": no such object'), (b"columns = 1", "expected one [[columns]]")],
)
def test_a_file_that_is_wrong(data: bytes | None, expected: str) -> None:
    """A schema file that is missing or wrong ends a run before Spark starts; commands that read do without it."""
    harness = Harness(schema={"file": FILE})
    if data is not None:
        harness.store.put(FILE, data)
    with pytest.raises(SettingsError) as caught:
        streaming.service(harness.app())
    assert expected in str(caught.value)
    assert harness.app().registry.latest().version == 0


def test_another_file_in_the_middle_of_a_run() -> None:
    """A driver that loses the race to the first version stops with the difference; its manifest stays to be done."""
    harness = typed_world()
    runner = harness.runner()
    other = Harness()
    other.store, other.clock = harness.store, harness.clock
    other.runner().run([other.deliver("m1", GOOD)])
    with pytest.raises(SettingsError, match="type 'long' -> expected 'string', as it has been since schema version 1"):
        runner.run([harness.deliver("m2", GOOD)])
    assert harness.ledger.state(ManifestKey("2026-01-02", "m2")).outcome is None


CHANGES: dict[str, Callable[[Any], Any]] = {
    "id": lambda column: pc.add(column, 1),
    "amount": lambda column: pc.add(column, pa.scalar(Decimal("0.01"), column.type)).cast(column.type, safe=False),
    "at": lambda column: pc.add(column.cast(pa.int64()), 1).cast(column.type),
    "day": lambda column: pc.add(column.cast(pa.int32()), pa.scalar(1, pa.int32())).cast(column.type),
    "ok": pc.invert,
    "x": pc.negate,
    "late": lambda column: pc.utf8_upper(pc.binary_join_element_wise(column, "x", "")),
    "_rescued_data": lambda column: pa.array(
        [[(key, f"{text} ") for key, text in each] if each else each for each in column.to_pylist()], column.type
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_any_changed_value_is_found(name: str) -> None:
    """Deep verification sees the smallest change of a value of any type."""
    harness = typed_world()
    harness.deliver("m1", LINES)
    harness.run_once()
    changed = 0
    for file in harness.commit("m1").outputs:
        table = pq.read_table(io.BytesIO(harness.store.read(file.final)))
        column = CHANGES[name](table[name])
        changed += column.cast(table[name].type) != table[name] or name == "x"
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(table.schema.get_field_index(name), table.schema.field(name), column), sink)
        harness.store.put(file.final, sink.getvalue().to_pybytes())
    assert changed
    found = harness.verification().discrepancies
    assert [each.found for each in found if "rows" in each.expected and each.found == "other values"], found


def test_verification_goes_by_the_limits_of_the_commit() -> None:
    """A commit is compared by the limits it was made with, whatever they are today."""
    harness = Harness()
    harness.deliver("m1", b'{"id": "%s"}\n' % (b"x" * 100))
    harness.run_once()
    commit = harness.commit("m1")
    assert harness.verification().discrepancies == []
    _put_commit(harness, commit.model_copy(update={"max_line_bytes": 50}))
    assert harness.verification().discrepancies != []


def _put_commit(harness: Harness, commit: Commit) -> None:
    harness.store.put(harness.layout.outcome(commit.key), commit.model_dump_json().encode())

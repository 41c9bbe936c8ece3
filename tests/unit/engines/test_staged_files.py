"""Verification before the commit: any contradiction is refused, with what was expected."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import StagingError, StoreUnavailable
from compactor.engines.engine import Staged, StagedOutput
from compactor.engines.parquet_files import parquet_facts
from compactor.engines.staged_files import verify_staged
from compactor.schema.column_types import parse_type
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.schema.schema import DeclaredColumn, extend
from tests.support.fakes import FaultyStore, arrow_type
from tests.support.memory_store import ManualClock, MemoryStore

NOW = ManualClock().now()
SCHEMA = extend(EMPTY_SCHEMA, {"a": "/r/1", "b": "/r/2"}, names="safe", max_columns=9, manifest_id="m", now=NOW)
MANIFEST = Manifest(
    manifest_id="m", date="2026-01-02", created_at=NOW, files=(ManifestFile(uri="/r/1"), ManifestFile(uri="/r/2"))
)


def report(uri: str, **figures: int) -> FileReport:
    return FileReport.model_validate({"uri": uri, "status": FileStatus.COMPACTED, **figures})


REPORTS = (
    report("/r/1", lines=4, records=2, rejected_lines=1, blank_lines=1, reject_rows=3),
    report("/r/2", lines=1, records=1),
)
OLDER = extend(EMPTY_SCHEMA, {"a": "/r/1"}, names="safe", max_columns=9, manifest_id="earlier", now=NOW)
NEWER = extend(OLDER, {"b": "/r/2"}, names="safe", max_columns=9, manifest_id="m", now=NOW)


def rows_of(*numbers: int) -> tuple[StagedOutput, ...]:
    return tuple(StagedOutput(f"/s/out/{number}", SCHEMA) for number in numbers)


STAGED = Staged(REPORTS, SCHEMA, rows_of(0, 1), ("/s/rejects/0",))


def parquet(rows: int, names: tuple[str, ...] = ("a", "b")) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array(["x"] * rows, pa.string()) for name in names}), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    for uri, rows in (("/s/out/0", 2), ("/s/out/1", 1), ("/s/rejects/0", 3)):
        made.put(uri, parquet(rows))
    return made


def test_sound(store: MemoryStore) -> None:
    """Consistent files are returned in order, with the figures of their footers."""
    outputs, rejects = verify_staged(store, MANIFEST, STAGED, ())
    assert [(file.uri, file.rows) for file in outputs] == [("/s/out/0", 2), ("/s/out/1", 1)]
    assert [(file.uri, file.rows) for file in rejects] == [("/s/rejects/0", 3)]
    assert outputs[0].size_bytes == len(store.read("/s/out/0"))


def staged(**changes: object) -> Staged:
    fields = {name: getattr(STAGED, name) for name in ("reports", "schema", "outputs", "rejects")}
    return Staged(**{**fields, **changes})


@pytest.mark.parametrize(
    ("damage", "given", "message"),
    [
        (None, staged(reports=REPORTS[:1]), "1 files reported; expected the manifest's 2 in order"),
        (None, staged(reports=REPORTS[::-1]), "2 files reported; expected the manifest's 2 in order"),
        (None, staged(reports=(REPORTS[0], report("/r/2", lines=2, records=1))), "has 2 lines, but 1 are accounted"),
        (
            None,
            staged(reports=(REPORTS[0], report("/r/2", lines=1, records=1).model_copy(update={"status": "missing"}))),
            "is missing, but has lines",
        ),
        (None, staged(outputs=rows_of(0)), "holds 2 rows, expected 3"),
        (None, staged(outputs=rows_of(0, 0)), "holds 4 rows, expected 3"),
        (None, staged(rejects=()), "holds 0 rejects, expected 3"),
        (lambda data: data[:-1], STAGED, "expected a complete Parquet file"),
        (lambda data: data[: len(data) // 2], STAGED, "expected a complete Parquet file"),
        (lambda _: b"", STAGED, "expected a complete Parquet file"),
        (lambda _: b"PAR1 no, not really PAR1", STAGED, "expected a complete Parquet file"),
        (lambda _: None, STAGED, "no such object"),
        (lambda _: parquet(2, ("a",)), STAGED, r"has columns \['a'\], expected \['a', 'b'\]"),
        (lambda _: parquet(2, ("b", "a")), STAGED, "has columns"),
        (lambda _: parquet(2, ("a", "b", "c")), STAGED, "has columns"),
    ],
)
def test_refused(
    store: MemoryStore, damage: Callable[[bytes], bytes | None] | None, given: Staged, message: str
) -> None:
    """Every way in which files and reports can contradict each other is refused."""
    if damage is not None:
        damaged = damage(store.read("/s/out/0"))
        store.delete(["/s/out/0"]) if damaged is None else store.put("/s/out/0", damaged)
    with pytest.raises(StagingError, match=message):
        verify_staged(store, MANIFEST, given, ())


def test_a_file_of_an_older_schema_version_has_its_columns(store: MemoryStore) -> None:
    """A file none of whose rows has the later keys may lack their columns, and no others."""
    outputs = (StagedOutput("/s/out/0", OLDER), StagedOutput("/s/out/1", NEWER))
    with pytest.raises(StagingError, match=r"/s/out/0 has columns \['a', 'b'\], expected \['a'\]"):
        verify_staged(store, MANIFEST, staged(schema=NEWER, outputs=outputs), ())
    store.put("/s/out/0", parquet(2, ("a",)))
    assert len(verify_staged(store, MANIFEST, staged(schema=NEWER, outputs=outputs), ())[0]) == 2


def test_a_file_of_another_line_of_versions_is_refused(store: MemoryStore) -> None:
    """Its columns are not those with which the schema of the whole begins."""
    other = extend(EMPTY_SCHEMA, {"b": "/r/1"}, names="safe", max_columns=9, manifest_id="other", now=NOW)
    store.put("/s/out/0", parquet(2, ("b",)))
    outputs = (StagedOutput("/s/out/0", other), StagedOutput("/s/out/1", NEWER))
    with pytest.raises(StagingError, match="not the first ones in the schema"):
        verify_staged(store, MANIFEST, staged(schema=NEWER, outputs=outputs), ())


ALL_TYPES = ("string", "long", "double", "decimal(9,2)", "decimal(38,38)", "boolean", "date", "timestamp")


def typed_parquet(**changed: pa.DataType) -> bytes:
    types = {f"c{at}": arrow_type(parse_type(kind)) for at, kind in enumerate(ALL_TYPES)}
    types["_rescued_data"] = pa.map_(pa.string(), pa.string())
    sink = pa.BufferOutputStream()
    fields = pa.schema({**types, **changed})
    pq.write_table(pa.table({name: pa.nulls(1, fields.field(name).type) for name in fields.names}), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def verify_types(data: bytes) -> None:
    declared = [DeclaredColumn(f"c{at}", f"c{at}", kind) for at, kind in enumerate(ALL_TYPES)]
    schema = extend(EMPTY_SCHEMA, {}, declared=declared, names="safe", max_columns=9, manifest_id="m", now=NOW)
    made = MemoryStore()
    made.put("/s/out/0", data)
    reports = (report("/r/1", lines=1, records=1), report("/r/2"))
    verify_staged(made, MANIFEST, Staged(reports, schema, (StagedOutput("/s/out/0", schema),), ()), ())


def test_types_as_planned() -> None:
    """Columns of every type are what was planned."""
    verify_types(typed_parquet())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("c0", pa.binary()),
        ("c1", pa.int32()),
        ("c1", pa.string()),
        ("c2", pa.float32()),
        ("c3", pa.decimal128(10, 2)),
        ("c3", pa.decimal128(9, 3)),
        ("c5", pa.string()),
        ("c6", pa.timestamp("ms")),
        ("c7", pa.timestamp("us")),
        ("c7", pa.timestamp("ms", "UTC")),
        ("c7", pa.timestamp("ns")),
        ("_rescued_data", pa.string()),
        ("_rescued_data", pa.map_(pa.string(), pa.int64())),
    ],
)
def test_another_type_is_refused(name: str, wrong: pa.DataType) -> None:
    """A column of another type than planned, even a near one, is refused by its name."""
    with pytest.raises(StagingError, match=rf"has column '{name}' of type .*, expected "):
        verify_types(typed_parquet(**{name: wrong}))


def test_int96_is_refused() -> None:
    """A timestamp in the old type that readers disagree on is not taken for one."""
    sink = pa.BufferOutputStream()
    table = pa.table({"at": pa.array([NOW], pa.timestamp("us", "UTC"))})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=False)
    made = MemoryStore()
    made.put("/f", sink.getvalue().to_pybytes())
    assert parquet_facts(made, "/f").types != ("timestamp",)


def test_metadata_columns_are_expected(store: MemoryStore) -> None:
    """Metadata columns that were asked for have to be there."""
    with pytest.raises(StagingError, match="_source_file"):
        verify_staged(store, MANIFEST, STAGED, ("_source_file",))


def test_passing_trouble_is_no_fault_of_the_file(store: MemoryStore) -> None:
    """A store that does not answer is passing trouble, and not a Parquet file that is not whole."""
    faulty = FaultyStore(store)
    faulty.unavailable_at(1, "read_range")
    with pytest.raises(StoreUnavailable):
        parquet_facts(faulty, "/s/out/0")


def test_footer_only() -> None:
    """Verifying a large file reads only its end."""

    class MeasuredStore(FaultyStore):
        read_bytes = 0

        def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
            self.read_bytes += length
            return super().read_range(uri, start, length, etag=etag)

    store = MeasuredStore(MemoryStore())
    table = pa.table({"a": pa.array([str(number) for number in range(300_000)])})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    store.put("/big", sink.getvalue().to_pybytes())
    assert parquet_facts(store, "/big").rows == 300_000
    assert store.read_bytes < sink.getvalue().size / 10

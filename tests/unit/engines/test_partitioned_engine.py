"""An engine that divides its files: every row is once in a file of its own partition, in bounded memory."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import AccessError, StagingError, StoreUnavailable
from compactor.core.partitions import PartitionValues, parse_fields
from compactor.engines.engine import Staged, StagedOutput
from compactor.engines.partitioned.counting import PartitionRules, divided
from compactor.engines.partitioned.engine import PartitionedEngine
from compactor.engines.partitioned.splitting import PartitionSplitter, SortedRows
from compactor.engines.rows_place import RowsPlace
from compactor.engines.staged_files import verify_staged
from compactor.schema.schema import RESCUED_COLUMN, RESCUED_TYPE, Column, SchemaVersion
from tests.support.harness import Harness
from tests.support.memory_store import ManualClock, MemoryStore

KEYS = ("ts", "who")
DAY_AND_WHO = ("day(ts)", "identity(who)")
STAGING = "/w/state/staging/m-1/1/"
STAGED = RowsPlace(f"{STAGING}partitions/out/")
IN_PLACE = "/w/output/merged-parquet-2025-09-03/m-1/1/"


def version(number: int) -> SchemaVersion:
    """A version whose first column is `ts`, with `who` from the second one on, and a map."""
    columns = [Column(key=key, name=key, added_in=at, field_id=at) for at, key in enumerate(KEYS[:number], 1)]
    return SchemaVersion(
        version=number, created_at=datetime(2026, 1, 1, tzinfo=UTC), manifest_id="m", columns=tuple(columns)
    )


def staged_file(store: MemoryStore, name: str, rows: Sequence[dict[str, Any]], number: int = 2) -> StagedOutput:
    """A file as an engine stages it, in row groups of three."""
    fields = [
        pa.field(key, pa.string(), metadata={"PARQUET:field_id": str(at)}) for at, key in enumerate(KEYS[:number], 1)
    ]
    entries = pa.map_(
        pa.field("key", pa.string(), nullable=False, metadata={"PARQUET:field_id": "101"}),
        pa.field("value", pa.string(), metadata={"PARQUET:field_id": "102"}),
    )
    fields.append(pa.field("_rescued_data", entries, metadata={"PARQUET:field_id": "9"}))
    data = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), pa.schema(fields)), data, row_group_size=3, store_schema=False)
    uri = f"{STAGING}out/{name}.parquet"
    store.put(uri, data.getvalue())
    return StagedOutput(uri, version(number))


@dataclass(frozen=True)
class Staging:
    """An engine that has staged its files before."""

    outputs: tuple[StagedOutput, ...]
    name = "plain"

    def is_healthy(self) -> bool:
        return True

    def stage(self, _: object) -> Staged:
        return Staged((), version(2), self.outputs, ())


def rules(fields: Sequence[str] = DAY_AND_WHO, most: int = 1000, target_file_bytes: int = 2**27) -> PartitionRules:
    return PartitionRules(parse_fields(fields), most, target_file_bytes, "zstd")


def stage(store: MemoryStore, outputs: Sequence[StagedOutput], how: PartitionRules, place: str = "") -> Staged:
    request: Any = Request(Manifest(), place=place)
    return PartitionedEngine(engine=Staging(tuple(outputs)), store=store, rules=how).stage(request)


@dataclass(frozen=True)
class Manifest:
    manifest_id: str = "m-1"


@dataclass(frozen=True)
class Request:
    manifest: Manifest
    staging: str = STAGING
    place: str = ""


def rows_of(store: MemoryStore, output: StagedOutput) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(BytesIO(store.read(output.uri))).to_pylist()
    return found


def own(row: dict[str, Any]) -> PartitionValues:
    """The partition of a row, found by hand."""
    ts = row["ts"]
    return ts[:10] if ts is not None and ts.endswith("Z") else None, row.get("who")


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.none() | st.just("never") | st.integers(1, 28).map(lambda day: f"2025-09-{day:02d}T01:02:03Z"),
            "who": st.none() | st.sampled_from(["", "a", "../b", "é" * 100]) | st.text("abc", max_size=2),
            "_rescued_data": st.none() | st.lists(st.tuples(st.just("k"), st.none() | st.text("xy")), max_size=1),
        }
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(1, 300), st.integers(1, 40), st.booleans())
def test_every_row_is_once_in_its_own_partition(
    files: list[list[dict[str, Any]]], run_bytes: int, most: int, small: bool
) -> None:
    """Whatever the rows: the same rows come out, each with the rows of its partition, however little memory there is.

    Rows beyond the limit, and those whose folder would be too long, are in one partition that says so.
    """
    store, how = MemoryStore(ManualClock()), rules(most=most)
    outputs = [staged_file(store, str(at), rows) for at, rows in enumerate(files)]
    kept = tuple(divided(store, outputs, how).kept)
    made = list(PartitionSplitter(store, how, kept, STAGED, run_bytes, 100 * small).split(outputs))
    assert Counter(str(row) for output in made for row in rows_of(store, output)) == Counter(
        str(row) for output in outputs for row in rows_of(store, output)
    )
    assert len(kept) <= most
    for output in made:
        found = {own(row) for row in rows_of(store, output)}
        assert found == {output.partition} if not output.holds_others else not found & set(kept)
        assert output.partition == (None, None) or not output.holds_others
    assert len({(output.partition, output.holds_others) for output in made}) == len(made)


def some(*days: int) -> list[dict[str, Any]]:
    return [{"ts": f"2025-09-{day:02d}T00:00:00Z", "who": "a"} for day in days]


def test_a_file_of_one_partition_stays() -> None:
    """It is not written again, and has its partition; files of another version of the schema are divided apart."""
    store = MemoryStore(ManualClock())
    one, two = staged_file(store, "one", some(1, 1)), staged_file(store, "two", some(1, 2))
    old = staged_file(store, "old", [{"ts": "2025-09-01T00:00:00Z"}, {"ts": "x"}], 1)
    made = stage(store, [one, two, old], rules())
    assert made.outputs[0] == replace(one, partition=("2025-09-01", "a"))
    assert [(output.schema.version, output.partition) for output in made.outputs[1:]] == [
        (1, ("2025-09-01", None)),
        (1, (None, None)),
        (2, ("2025-09-01", "a")),
        (2, ("2025-09-02", "a")),
    ]
    assert made.unparsed_times == 1
    assert made.partition_by == parse_fields(DAY_AND_WHO)


def test_files_in_place_are_in_the_folders_of_their_partitions() -> None:
    """Those of one partition, too, whose bytes are as they were; what the engine staged stays where it is."""
    store = MemoryStore(ManualClock())
    one, two = staged_file(store, "one", some(1, 1)), staged_file(store, "two", some(1, 2, 3))
    made = stage(store, [one, two], rules(most=2), IN_PLACE)
    day = f"{IN_PLACE}ts_day=2025-09-0"
    assert [output.uri for output in made.outputs] == [
        f"{day}1/who_value=a/whole-000000.zstd.parquet",
        f"{day}1/who_value=a/000000.zstd.parquet",
        f"{day}2/who_value=a/000001.zstd.parquet",
        f"{IN_PLACE}ts_day=__HIVE_DEFAULT_PARTITION__/who_value=__HIVE_DEFAULT_PARTITION__/000002.zstd.parquet",
    ]
    assert store.read(made.outputs[0].uri) == store.read(one.uri)
    assert [info.uri for info in store.list(STAGING)] == [one.uri, two.uri]


@pytest.mark.parametrize("name", ["whole-000000", "000000"])
def test_a_file_in_place_takes_no_place_of_another(name: str) -> None:
    """Whatever has its name stays as it is, and the attempt fails."""
    store = MemoryStore(ManualClock())
    other = f"{IN_PLACE}ts_day=2025-09-01/who_value=a/{name}.zstd.parquet"
    store.put(other, b"other")
    outputs = [staged_file(store, "one", some(1, 1)), staged_file(store, "two", some(1, 2))]
    with pytest.raises(StoreUnavailable, match="another object exists"):
        stage(store, outputs, rules(), IN_PLACE)
    assert store.read(other) == b"other"


def test_files_are_as_the_engines_write_them() -> None:
    """They have the same columns with the same ids, the codec of the settings, statistics, and no schema of Arrow's."""
    store = MemoryStore(ManualClock())
    before = staged_file(store, "a", [{**row, "_rescued_data": [("k", None)]} for row in some(1, 2)])
    after = stage(store, [before], rules()).outputs[0]
    old, new = (pq.ParquetFile(BytesIO(store.read(output.uri))) for output in (before, after))
    assert new.schema_arrow.equals(old.schema_arrow, check_metadata=True)
    assert new.metadata.metadata is None
    chunk = new.metadata.row_group(0).column(0)
    assert (chunk.compression, chunk.statistics.max) == ("ZSTD", "2025-09-01T00:00:00Z")


def test_large_partitions_have_files_of_the_right_size() -> None:
    """A partition begins its next file at the target size."""
    store = MemoryStore(ManualClock())
    rows = [
        {"ts": f"2025-09-01T00:00:{at % 60:02d}Z", "who": f"{pow(7919, at, 2**521 - 1):0131x}"} for at in range(3_000)
    ]
    outputs = [staged_file(store, str(at), rows[at::20]) for at in range(20)] + [staged_file(store, "x", some(2))]
    how = rules(["day(ts)"], target_file_bytes=60_000)
    made = PartitionSplitter(store, how, tuple(divided(store, outputs, how).kept), STAGED, 100_000).split(outputs)
    sizes = [len(store.read(output.uri)) for output in made if output.partition == ("2025-09-01",)]
    assert len(sizes) > 2
    assert all(45_000 <= size <= 75_000 for size in sizes[:-1]), sizes


def test_the_largest_partitions_are_kept() -> None:
    """Days that only hostile rows have do not take the place of honest ones, wherever in the file they are."""
    store = MemoryStore(ManualClock())
    few = staged_file(store, "few", some(3, 4, 1, 1, 2, 2))
    assert list(divided(store, [few], rules(["day(ts)"], most=2)).kept) == [("2025-09-01",), ("2025-09-02",)]
    hostile = [{"ts": f"{year:04d}-01-01T00:00:00Z", "who": "h"} for year in range(1, 800)]
    output = staged_file(store, "a", hostile[:400] + some(*[1, 2] * 40) + hostile[400:])
    division = divided(store, [output], rules(["day(ts)"], most=2))
    assert list(division.kept) == [("2025-09-01",), ("2025-09-02",)]
    made = stage(store, [output], rules(["day(ts)"], most=2)).outputs
    assert [(each.partition, each.holds_others) for each in made][-1] == ((None,), True)
    assert len(rows_of(store, made[-1])) == len(hostile)


def test_lost_rows_stop_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted before is compared with the footers: a lost row, or one in another partition, is found."""
    store = MemoryStore(ManualClock())
    output = staged_file(store, "a", some(1, 1, 2))
    report = FileReport(uri="/w/raw/a", status=FileStatus.COMPACTED, lines=3, records=3)
    manifest = Harness().manifest("m-1", [ManifestFile(uri=report.uri)])
    made = replace(stage(store, [output], rules()), reports=(report,))
    first, second = made.outputs
    verify_staged(store, manifest, with_column_types(made), ())
    wrong = (replace(first, partition=second.partition), replace(second, partition=first.partition))
    with pytest.raises(StagingError, match="manifest m-1: a partition holds 1 rows, expected 2"):
        verify_staged(store, manifest, with_column_types(replace(made, outputs=wrong)), ())
    monkeypatch.setattr(SortedRows, "rows_of", lambda *_: iter(()))
    with pytest.raises(StagingError, match="3 of its rows were not written to partitions"):
        stage(store, [output], rules())


def with_column_types(made: Staged) -> Staged:
    """With the column of rescued data in the schema, which the files have."""
    rescued = Column(key=None, name=RESCUED_COLUMN, added_in=2, type=RESCUED_TYPE, field_id=9)
    schema = made.schema.model_copy(update={"columns": (*made.schema.columns, rescued)})
    return replace(made, schema=schema, outputs=tuple(replace(each, schema=schema) for each in made.outputs))


def test_no_rows() -> None:
    """Output without rows has no partitions."""
    assert stage(MemoryStore(ManualClock()), [], rules()).outputs == ()
    assert Harness().settings.partition_fields == ()


class FailingStore(MemoryStore):
    """Fails at a write, as one that throttles."""

    error: type[Exception] = StoreUnavailable
    puts_fail = False

    def put(self, uri: str, data: bytes) -> None:
        if self.puts_fail:
            raise self.error(f"{uri}: 503")
        super().put(uri, data)

    @contextmanager
    def writer(self, uri: str) -> Iterator[Any]:
        with super().writer(uri) as inner:
            yield FailingWriter(inner, self.error(f"{uri}: 503"))


@dataclass
class FailingWriter:
    inner: Any
    error: Exception
    written: int = 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        if self.written > 100:
            raise self.error
        self.inner.write(data)

    def abort(self) -> None:
        self.inner.abort()


@pytest.mark.parametrize("raised", [StoreUnavailable, AccessError])
@pytest.mark.parametrize("small_bytes", [0, 10_000], ids=("large", "small"))
def test_a_failed_write_is_trouble_of_the_store(raised: type[Exception], small_bytes: int) -> None:
    """It has the type by which the job tells what to do next, and leaves no file behind."""
    store = FailingStore(ManualClock())
    store.error = raised
    output = staged_file(store, "a", some(1, 2))
    store.puts_fail = True
    splitter = PartitionSplitter(
        store, rules(), (("2025-09-01", "a"), ("2025-09-02", "a")), STAGED, small_bytes=small_bytes
    )
    with pytest.raises(raised, match="503"):
        list(splitter.split([output]))
    assert [info.uri for info in store.list(STAGING)] == [output.uri]


def test_trouble_of_the_disk_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not fit into memory go to scratch; if that cannot be written, the attempt is tried again."""
    store = MemoryStore(ManualClock())
    output = staged_file(store, "a", some(1, 2, 3, 4))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StoreUnavailable, match="scratch files in"):
        stage(store, [output], rules())

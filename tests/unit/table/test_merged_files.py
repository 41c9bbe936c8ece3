"""Which files are merged, and what merged files have: all rows, in order, with the columns of all their parts."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.store import LocalStore
from compactor.core.documents.table_records import MergedFile, MergedPart
from compactor.core.errors import StagingError
from compactor.ledger.sizing import is_right_sized
from compactor.schema.schema import RESCUED_COLUMN, RESCUED_TYPE, Column, SchemaVersion
from compactor.table.merging import writing
from compactor.table.merging.choosing import MAX_FILES, MergeRule
from compactor.table.merging.same_rows import first_difference
from compactor.table.merging.writing import MergedFiles, UnlikeColumnsError, united
from tests.support.iceberg_tables import arrow_schema, written
from tests.support.table_catalogs import DATE, version

TARGET = 1000


@dataclass(frozen=True)
class File:
    size_bytes: int


def groups(*sizes: int) -> list[list[int]]:
    return [[each.size_bytes for each in group] for group in MergeRule(TARGET).chosen([File(size) for size in sizes])]


def test_which_files_are_merged() -> None:
    """Small ones, if they make a file of the right size, or one that is half as large again as the largest."""
    assert groups(400, 300, 300) == [[400, 300, 300]]
    assert groups(1000, 800, 400) == [], "one alone"
    assert groups(600, 50, 50) == [[50, 50]], "a file that would be written again for little stays"
    assert groups(600, 200, 200) == [[600, 200, 200]]
    assert groups(100, 50) == [[100, 50]]
    assert groups() == []
    assert groups(700, 700) == [], "no file of the right size comes of it, now or later"
    assert groups(700, 740, 740, 280) == [[740, 280]], "wherever they are"
    assert [len(each) for each in groups(*[1] * (2 * MAX_FILES))] == [MAX_FILES, MAX_FILES]


@given(st.lists(st.integers(1, 2 * TARGET), max_size=40))
def test_any_sizes(sizes: list[int]) -> None:
    """Each file is in one group at most; a row is written again so often at most as its file can grow by half."""
    found = groups(*sizes)
    assert all(len(group) > 1 for group in found)
    left = list(sizes)
    for size in (each for group in found for each in group):
        left.remove(size)
        assert size < 0.75 * TARGET
    for group in found:
        assert is_right_sized(sum(group), TARGET) or TARGET > sum(group) >= 1.5 * max(group)


@given(st.lists(st.integers(1, TARGET), min_size=1, max_size=60))
def test_it_ends(sizes: list[int]) -> None:
    """Merging what was merged comes to an end; of the small files left, each is twice as large as all below it."""
    for _ in range(60):
        found = groups(*sizes)
        if not found:
            break
        for group in found:
            for each in group:
                sizes.remove(each)
            sizes.append(sum(group))
    assert not groups(*sizes)
    small = sorted(size for size in sizes if size < 0.75 * TARGET)
    assert all(2 * sum(small[:at]) < size for at, size in enumerate(small) if at and sum(small[: at + 1]) <= TARGET)


_TYPES = {
    "text": "string", "n": "long", "x": "double", "ok": "boolean", "day": "date", "at": "timestamp",
    "price": "decimal(10,2)", "ids": "list<long>", "by": "map<string,struct<a:timestamp,b:list<string>>>",
}  # fmt: skip
_RESCUED = Column(key=None, name=RESCUED_COLUMN, added_in=1, type=RESCUED_TYPE, field_id=99)
TYPED = SchemaVersion(
    version=2,
    created_at=datetime(2026, 1, 2, tzinfo=UTC),
    manifest_id="m",
    columns=(
        *(
            Column(key=key, name=key, added_in=1, type=kind, field_id=10 * at)
            for at, (key, kind) in enumerate(_TYPES.items(), 1)
        ),
        _RESCUED,
    ),
)
ROW: dict[str, Any] = {
    "text": "é😀", "n": -5, "x": 1.5, "ok": True, "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, tzinfo=UTC),
    "price": Decimal("1.10"), "ids": [1, None], "by": [("k", {"a": None, "b": ["é"]}), ("n", None)],
    RESCUED_COLUMN: [("k", "v"), ("none", None)],
}  # fmt: skip
EARLIER = TYPED.model_copy(update={"version": 1, "columns": (*TYPED.columns[:5], _RESCUED)})


def part(folder: Path, name: str, schema: SchemaVersion, rows: list[dict[str, Any]]) -> MergedPart:
    file = written(folder / f"{name}.parquet", schema, rows)
    return MergedPart(
        date=DATE, manifest_id=name, uri=str(folder / f"{name}.parquet"), rows=file.records, size_bytes=file.size_bytes
    )


def merged(folder: Path, *parts: MergedPart) -> MergedFile:
    uri = str(folder / "merged.parquet")
    rows, size_bytes = MergedFiles(LocalStore(), "zstd").write(uri, parts, [each.uri for each in parts])
    return MergedFile(uri=uri, rows=rows, size_bytes=size_bytes, date=DATE, parts=list(parts))


def test_columns_of_several_versions(tmp_path: Path) -> None:
    """Types, values, rescued data, field ids, statistics and the codec are as an engine writes them."""
    nothing: dict[str, Any] = {}
    parts = [
        part(tmp_path, "a", EARLIER, [{**{key: ROW[key] for key in ("text", "n", RESCUED_COLUMN)}}, nothing]),
        part(tmp_path, "b", TYPED, [ROW, nothing]),
    ]
    made = merged(tmp_path, *parts)
    assert (made.rows, made.size_bytes) == (4, (tmp_path / "merged.parquet").stat().st_size)
    file = pq.ParquetFile(made.uri)
    assert file.schema_arrow.equals(pq.ParquetFile(parts[1].uri).schema_arrow, check_metadata=True)
    column = file.metadata.row_group(0).column(file.schema_arrow.get_field_index("n"))
    assert (column.compression, column.statistics.min, column.statistics.null_count) == ("ZSTD", -5, 2)
    rows = file.read().to_pylist()
    assert [row["n"] for row in rows] == [-5, None, -5, None]
    assert {key: rows[2][key] for key in ROW} == ROW
    assert rows[0][RESCUED_COLUMN] == ROW[RESCUED_COLUMN]
    assert (rows[0]["price"], rows[3][RESCUED_COLUMN]) == (None, None)
    assert first_difference(LocalStore(), made) == ""


def test_columns_that_differ(tmp_path: Path) -> None:
    """One id with two types, or two ids with one name, is no file; nor are columns without ids."""
    other = TYPED.model_copy(update={"columns": (TYPED.columns[0].model_copy(update={"type": "long"}),)})
    parts = [part(tmp_path, "a", TYPED, [ROW]), part(tmp_path, "b", other, [{"text": 1}])]
    with pytest.raises(UnlikeColumnsError, match="columns differ from"):
        merged(tmp_path, *parts)
    assert united([arrow_schema(version(1)), arrow_schema(version(1), without_ids=True)]) is None
    renumbered = TYPED.model_copy(update={"columns": (TYPED.columns[0].model_copy(update={"field_id": 98}),)})
    assert united([arrow_schema(TYPED), arrow_schema(renumbered)]) is None


def test_rows_that_get_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or change on their way are found before the file is used."""
    parts = [part(tmp_path, name, TYPED, [ROW, {}]) for name in "ab"]
    aligned = writing.aligned

    def changed(batch: pa.RecordBatch, columns: pa.Schema) -> pa.Table:
        table = aligned(batch, columns)
        at = columns.get_field_index("n")
        return table.set_column(at, columns.field(at), pa.array([7] * table.num_rows, pa.int64()))

    for fault, message in ((lambda *given: aligned(*given).slice(1), "2 rows"), (changed, "4 values in column 'n'")):
        monkeypatch.setattr(writing, "aligned", fault)
        with pytest.raises(StagingError, match=message):
            merged(tmp_path, *parts)


def test_other_rows_are_found(tmp_path: Path) -> None:
    """By comparing each row with those of the parts: one that differs, one that lacks, and one too many."""
    store, parts = LocalStore(), [part(tmp_path, name, TYPED, [ROW, {}]) for name in "ab"]
    made = merged(tmp_path, *parts)
    for name, rows in (("a", [ROW, ROW]), ("b", [{}, ROW])):
        part(tmp_path, name, TYPED, rows)
        assert f"{name}.parquet" in first_difference(store, made)
        part(tmp_path, name, TYPED, [ROW, {}])
    assert "more than 4 rows" in first_difference(store, made.model_copy(update={"parts": parts[:1]}))
    part(tmp_path, "b", TYPED, [ROW, {}, {}])
    assert first_difference(store, made)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(StagingError):
        first_difference(store, made)

"""Reading an S3 Inventory: each format gives the same rows, and what is wrong is named before anything is planned."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from compactor.core.errors import InventoryError
from compactor.sources.inventory.document import parse_inventory
from compactor.sources.inventory.reading import InventoryReader
from compactor.sources.inventory.rows import InventoryRow
from tests.support.inventories import (
    ALL_VERSIONS,
    BUCKET,
    CREATED,
    FOLDER,
    FORMATS,
    MANIFEST,
    NEEDED,
    put_document,
    put_inventory,
    row,
)
from tests.support.memory_store import MemoryStore

AT = datetime(2026, 1, 1, 8, 0, 0, 123000, tzinfo=UTC)
KEYS = ["raw/a b.ndjson", "raw/a+b.ndjson", "raw/100%25.ndjson", "raw/ä/日本.ndjson", 'raw/line\nfeed, "quoted".ndjson']


def rows_of(store: MemoryStore, uri: str = MANIFEST) -> list[InventoryRow]:
    reader = InventoryReader(store)
    return list(reader.rows(reader.open(uri)))


@pytest.mark.parametrize("file_format", FORMATS)
def test_names_sizes_times_and_versions(file_format: str) -> None:
    """Keys come decoded, with times to the millisecond, from all data files."""
    store = MemoryStore()
    put_inventory(store, [row(key, modified_at=AT) for key in KEYS], file_format=file_format, data_files=2)
    found = rows_of(store)
    assert sorted(each.key for each in found) == sorted(KEYS)
    assert {each[:1] + each[2:] for each in found} == {(BUCKET, 10, "e1", AT, True, False, "", "")}
    inventory = InventoryReader(store).open(MANIFEST)
    assert (inventory.created_at, inventory.source_bucket, len(inventory.files)) == (CREATED, BUCKET, 2)


@pytest.mark.parametrize("file_format", FORMATS)
def test_versions_and_classes(file_format: str) -> None:
    """An inventory of all versions says which are latest, which are delete markers, and where they are stored."""
    store = MemoryStore()
    marker: dict[str, Any] = {**row("raw/gone"), "Size": None, "ETag": None, "IsLatest": True, "IsDeleteMarker": True}
    old = row("raw/a", IsLatest=False, IsDeleteMarker=False, StorageClass="GLACIER")
    tier = row("raw/b", IsLatest=True, IsDeleteMarker=False, IntelligentTieringAccessTier="ARCHIVE")
    put_inventory(store, [marker, old, tier], file_format=file_format, columns=ALL_VERSIONS)
    assert [(each.key, *each[5:]) for each in rows_of(store)] == [
        ("raw/gone", True, True, "", ""),
        ("raw/a", False, False, "GLACIER", ""),
        ("raw/b", True, False, "", "ARCHIVE"),
    ]


def _without(name: str) -> dict[str, Any]:
    return {"columns": [each for each in NEEDED if each != name]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fileFormat": "Avro"}, "fileFormat is 'Avro'; expected CSV, ORC or Parquet"),
        ({"sourceBucket": "a b"}, "sourceBucket is 'a b'; expected a bucket name"),
        ({"creationTimestamp": "soon"}, "creationTimestamp is 'soon'; expected milliseconds since 1970"),
        ({"fileSchema": ""}, "fileSchema is ''; expected the columns of its data files"),
        ({"files": []}, "expected files to be a list of 1 to 100,000 data files"),
        ({"files": [{"key": "a", "size": 1}]}, r"files\[0\]: expected a key, a size and an MD5checksum of 32"),
        ({"files": [{"key": "a", "size": 1, "MD5checksum": "0" * 32}] * 2}, "lists a data file twice"),
        (_without("ETag"), "fileSchema has no ETag; expected an inventory configured with these fields"),
        (_without("Size"), "fileSchema has no Size"),
        (_without("LastModifiedDate"), "fileSchema has no LastModifiedDate"),
    ],
)
@pytest.mark.parametrize("file_format", FORMATS)
def test_manifest_that_cannot_be_used(file_format: str, changes: dict[str, Any], message: str) -> None:
    """Every field that is wrong is named, with what was expected."""
    store = MemoryStore()
    put_inventory(store, [row("raw/a")], file_format=file_format, **changes)
    with pytest.raises(InventoryError, match=message) as caught:
        rows_of(store)
    assert str(caught.value).startswith(f"{MANIFEST}: ")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"{}", b'{"files": [1]}', b"\xff\xfe"])
def test_no_manifest_at_all(data: bytes) -> None:
    """Other documents are refused with what was expected."""
    with pytest.raises(InventoryError, match="expected"):
        parse_inventory(data, MANIFEST)


def _break(change: Callable[[MemoryStore], object], file_format: str = "CSV") -> str:
    store = MemoryStore()
    put_inventory(store, [row(f"raw/{number}") for number in range(3)], file_format=file_format)
    change(store)
    with pytest.raises(InventoryError) as caught:
        rows_of(store)
    return str(caught.value)


DATA = f"{FOLDER}/data/0.csv.gz"
CHECKSUM = MANIFEST.replace("manifest.json", "manifest.checksum")


def test_objects_that_are_not_what_s3_wrote() -> None:
    """A missing or changed object is named, with what was expected of it."""
    assert _break(lambda store: store.delete([MANIFEST])).startswith(f"{MANIFEST}: no such object")
    assert _break(lambda store: store.delete([CHECKSUM])).startswith(f"{CHECKSUM}: no such object")
    assert "expected that of manifest.checksum" in _break(lambda store: store.put(CHECKSUM, b"0" * 32))
    assert _break(lambda store: store.delete([DATA])).startswith(f"{DATA}: no such object; expected each data")
    assert "bytes; expected" in _break(lambda store: store.put(DATA, b"short"))
    damaged = _break(lambda store: store.put(DATA, bytes(len(store.read(DATA)))))
    assert damaged.startswith(f"{DATA}: its MD5 is")


@pytest.mark.parametrize(
    "uri", [f"{FOLDER}/hive/dt=2026-01-02-01-00/symlink.txt", f"{FOLDER}/2026-01-02T01-00Z/", "s3://b/k"]
)
def test_other_places(uri: str) -> None:
    """Only a manifest.json is an inventory."""
    with pytest.raises(InventoryError, match=r"expected the manifest\.json of an S3 Inventory"):
        InventoryReader(MemoryStore()).open(uri)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row("raw/a") | {"Bucket": "other"}], "lists an object in another bucket; expected all in lake"),
        ([row("raw/a") | {"ETag": None}], "has no ETag or no LastModifiedDate"),
        ([row("raw/a") | {"LastModifiedDate": None}], "has no ETag or no LastModifiedDate"),
        ([row("")], "has no bucket, no key or no size"),
        ([row("raw/a", -1)], "has no bucket, no key or no size"),
    ],
)
@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_that_cannot_be_planned(file_format: str, rows: list[dict[str, Any]], message: str) -> None:
    """A row without what claims need ends it, and is not passed over."""
    store = MemoryStore()
    put_inventory(store, rows, file_format=file_format)
    with pytest.raises(InventoryError, match=message):
        rows_of(store)


@pytest.mark.parametrize(("declared", "written"), [("CSV", "Parquet"), ("Parquet", "ORC"), ("ORC", "CSV")], ids=str)
def test_files_of_another_format(declared: str, written: str) -> None:
    """A data file is read only as what the manifest says it is."""
    store = MemoryStore()
    put_inventory(store, [row("raw/a")], file_format=written, fileFormat=declared, fileSchema=_schema(declared))
    with pytest.raises(InventoryError, match=f"{FOLDER}/data/0"):
        rows_of(store)


def _schema(file_format: str) -> str:
    store = MemoryStore()
    put_inventory(store, [row("raw/a")], file_format=file_format)
    document: str = store.read(MANIFEST).decode()
    return document.split('"fileSchema": "')[1].partition('"')[0]


def test_csv_with_other_columns_than_declared() -> None:
    """A row with more or fewer fields than the manifest names is refused with its number."""
    store = MemoryStore()
    put_inventory(store, [row("raw/a")], file_format="CSV", fileSchema="Bucket, Key, Size, LastModifiedDate, ETag, X")
    with pytest.raises(InventoryError, match="row 1 has 5 fields; expected 6"):
        rows_of(store)
    put_inventory(store, [row("raw/a")], file_format="CSV", fileSchema="Bucket, Key, LastModifiedDate, Size, ETag")
    with pytest.raises(InventoryError, match="row 1 is malformed"):
        rows_of(store)


def test_parquet_without_a_column_that_it_declares() -> None:
    """What the file has counts, and not what the manifest says of it."""
    store = MemoryStore()
    declared = _schema("Parquet")
    put_inventory(store, [row("raw/a")], columns=["Bucket", "Key", "Size", "LastModifiedDate"], fileSchema=declared)
    with pytest.raises(InventoryError, match="has no column ETag; expected those in its manifest"):
        rows_of(store)


def test_a_copy_on_a_disk() -> None:
    """Of a copied inventory, the data files are looked for beside the folder of its manifest.json."""
    store = MemoryStore()
    put_inventory(store, [row("raw/a")])
    put_document(store, store.read(MANIFEST), "/copy/all/2026-01-02T01-00Z/manifest.json")
    store.put("/copy/all/data/0.parquet", store.read(f"{FOLDER}/data/0.parquet"))
    assert [each.key for each in rows_of(store, "/copy/all/2026-01-02T01-00Z/manifest.json")] == ["raw/a"]

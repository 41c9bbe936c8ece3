"""S3 Inventories as S3 writes them, in each of its three formats."""

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from compactor.core.ports import ObjectStore

BUCKET = "lake"
CREATED = datetime(2026, 1, 2, 1, tzinfo=UTC)
FORMATS = ("CSV", "ORC", "Parquet")
FOLDER = "s3://inventories/daily/lake/all"
MANIFEST = f"{FOLDER}/2026-01-02T01-00Z/manifest.json"

COLUMNS = {
    "Bucket": ("bucket", "string", pa.string()),
    "Key": ("key", "string", pa.string()),
    "VersionId": ("version_id", "string", pa.string()),
    "IsLatest": ("is_latest", "boolean", pa.bool_()),
    "IsDeleteMarker": ("is_delete_marker", "boolean", pa.bool_()),
    "Size": ("size", "bigint", pa.int64()),
    "LastModifiedDate": ("last_modified_date", "timestamp", pa.timestamp("ms")),
    "ETag": ("e_tag", "string", pa.string()),
    "StorageClass": ("storage_class", "string", pa.string()),
    "IntelligentTieringAccessTier": ("intelligent_tiering_access_tier", "string", pa.string()),
}
"""The columns by their names in CSV, with those in ORC and Parquet, and their types in either."""

NEEDED = ("Bucket", "Key", "Size", "LastModifiedDate", "ETag")
ALL_VERSIONS = tuple(COLUMNS)
_PARQUET = {"string": "binary {} (STRING)", "boolean": "boolean {}", "bigint": "int64 {}"}
_ENDINGS = {"CSV": "csv.gz", "ORC": "orc", "Parquet": "parquet"}

Row = Mapping[str, Any]


def row(key: str, size_bytes: int = 10, etag: str = "e1", **more: Any) -> dict[str, Any]:
    """A row by the names of CSV."""
    modified_at = more.pop("modified_at", datetime(2026, 1, 1, 8, tzinfo=UTC))
    return {
        "Bucket": BUCKET, "Key": key, "Size": size_bytes, "LastModifiedDate": modified_at, "ETag": etag, **more
    }  # fmt: skip


def data_file(rows: Sequence[Row], file_format: str, columns: Sequence[str] = NEEDED) -> bytes:
    """The bytes of one data file."""
    if file_format == "CSV":
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
            [_csv_field(name, each.get(name)) for name in columns] for each in rows
        )
        return gzip.compress(text.getvalue().encode())
    fields = [(COLUMNS[name][0], COLUMNS[name][2]) for name in columns]
    values = {COLUMNS[name][0]: [_arrow_value(each.get(name)) for each in rows] for name in columns}
    table, out = pa.table(values, schema=pa.schema(fields)), io.BytesIO()
    if file_format == "ORC":
        orc.write_table(table, out)
    else:
        pq.write_table(table, out)
    return out.getvalue()


def _csv_field(name: str, value: Any) -> str:
    if name == "Key":
        return quote_plus(value, safe="/")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return "" if value is None else str(value)


def _arrow_value(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def file_schema(file_format: str, columns: Sequence[str]) -> str:
    """The value of `fileSchema`."""
    if file_format == "CSV":
        return ", ".join(columns)
    names = [COLUMNS[name] for name in columns]
    if file_format == "ORC":
        return f"struct<{','.join(f'{name}:{kind}' for name, kind, _ in names)}>"
    fields = (_PARQUET.get(kind, "int64 {} (TIMESTAMP(MILLIS,true))").format(name) for name, kind, _ in names)
    return f"message s3.inventory {{  {'  '.join(f'optional {field};' for field in fields)}}}"


def put_inventory(
    store: ObjectStore,
    rows: Sequence[Row],
    *,
    file_format: str = "Parquet",
    columns: Sequence[str] = NEEDED,
    data_files: int = 1,
    manifest: str = MANIFEST,
    **changes: Any,
) -> str:
    """Write an inventory, and return the place of its manifest.json; `changes` are made to that document."""
    folder, named = manifest.rsplit("/", 2)[0], []
    for number in range(data_files):
        data = data_file(rows[number::data_files], file_format, columns)
        uri = f"{folder}/data/{number}.{_ENDINGS[file_format]}"
        store.put(uri, data)
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        named.append({"key": uri.removeprefix("s3://").partition("/")[2], "size": len(data), "MD5checksum": md5})
    document = {
        "sourceBucket": BUCKET,
        "destinationBucket": "arn:aws:s3:::inventories",
        "version": "2016-11-30",
        "creationTimestamp": str(int(CREATED.timestamp() * 1000)),
        "fileFormat": file_format,
        "fileSchema": file_schema(file_format, columns),
        "files": named,
        **changes,
    }
    put_document(store, json.dumps(document).encode(), manifest)
    return manifest


def put_document(store: ObjectStore, data: bytes, manifest: str = MANIFEST) -> None:
    """Write a manifest.json with its checksum."""
    store.put(manifest, data)
    checksum = hashlib.md5(data, usedforsecurity=False).hexdigest()
    store.put(manifest.replace("manifest.json", "manifest.checksum"), checksum.encode())

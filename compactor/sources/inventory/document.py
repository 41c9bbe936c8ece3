"""Parses the manifest.json of an S3 Inventory: its data files, and their columns. No I/O."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from compactor.core.errors import InventoryError
from compactor.core.layout import base_name, is_s3
from compactor.core.text.safe_text import visible

NEEDED = {
    "bucket": "Bucket",
    "key": "Key",
    "size": "Size",
    "lastmodifieddate": "LastModifiedDate",
    "etag": "ETag",
}
"""The columns that planning needs, by `column_name`, with their names in an inventory configuration."""

WANTED = (*NEEDED, "islatest", "isdeletemarker", "storageclass", "intelligenttieringaccesstier")
"""All columns that planning reads, if the inventory has them."""

MAX_FILES = 100_000
_MD5 = re.compile(r"[0-9a-f]{32}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", re.IGNORECASE)
_SCHEMAS = {
    "CSV": re.compile(r"(?:^|,)\s*(\w+)\s*(?=,|$)"),
    "ORC": re.compile(r"(?:<|,)\s*(\w+)\s*:"),
    "Parquet": re.compile(r"\b(?:required|optional)\s+\w+\s+(\w+)"),
}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of an inventory, with its MD5 in hexadecimal."""

    uri: str
    size_bytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of an inventory's manifest.json.

    Attributes:
        uri: The URI of the manifest.json.
        source_bucket: The bucket whose objects it lists.
        created_at: When S3 started listing them. Objects written, replaced or deleted later may be missing.
        file_format: CSV, ORC or Parquet.
        columns: All columns in order, as spelled by `column_name`.
    """

    uri: str
    source_bucket: str
    created_at: datetime
    file_format: str
    columns: tuple[str, ...]
    files: tuple[DataFile, ...]


def column_name(name: str) -> str:
    """Normalise a column's name: `LastModifiedDate` in CSV is `last_modified_date` in ORC and Parquet."""
    return name.replace("_", "").lower()


def parse_inventory(data: bytes, uri: str) -> Inventory:
    """Parse an inventory's manifest.json, given its URI. S3 writes the data files into the same bucket.

    Raises:
        InventoryError: It is malformed; the message lists every fault.
    """
    try:
        document: Any = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise InventoryError(f"{uri}: not JSON; expected the manifest.json of an S3 Inventory") from exc
    if not isinstance(document, dict):
        raise InventoryError(f"{uri}: expected a JSON object, the manifest.json of an S3 Inventory")
    faults: list[str] = []
    take = partial(_taken, document, faults)
    file_format = take("fileFormat", lambda each: each if each in _SCHEMAS else None, "CSV, ORC or Parquet")
    bucket = take("sourceBucket", lambda each: each if _BUCKET.fullmatch(each) else None, "a bucket name")
    created_at = take("creationTimestamp", _moment, "milliseconds since 1970, as text")
    columns = take("fileSchema", partial(_columns, file_format), "the columns of its data files")
    missing = [NEEDED[each] for each in NEEDED if columns and each not in columns]
    if missing:
        faults.append(f"fileSchema has no {', '.join(missing)}; expected an inventory configured with these fields")
    files = tuple(_files(document.get("files"), uri, faults))
    if faults:
        raise InventoryError(f"{uri}: {'; '.join(faults)}")
    return Inventory(uri, bucket, created_at, file_format, columns, files)


def _taken(document: dict[str, Any], faults: list[str], key: str, read: Callable[[Any], Any], expected: str) -> Any:
    """A value from the document; None, and one more fault, if it is missing or wrong."""
    try:
        value = read(document[key])
    except (KeyError, TypeError, ValueError, OverflowError):
        value = None
    if value is None:
        found = "is missing" if key not in document else f"is {visible(repr(document[key]))[:80]}"
        faults.append(f"{key} {found}; expected {expected}")
    return value


def _moment(text: Any) -> datetime:
    return datetime.fromtimestamp(int(text) / 1000, UTC)


def _columns(file_format: str | None, schema: str) -> tuple[str, ...] | None:
    if file_format is None:
        return None
    return tuple(map(column_name, _SCHEMAS[file_format].findall(schema))) or None


def _files(listed: Any, uri: str, faults: list[str]) -> list[DataFile]:
    """The data files; adds a fault for each invalid entry."""
    if not isinstance(listed, list) or not listed or len(listed) > MAX_FILES:
        faults.append(f"expected files to be a list of 1 to {MAX_FILES:,} data files")
        return []
    found: list[DataFile] = []
    for number, each in enumerate(listed):
        try:
            key, size_bytes, md5 = each["key"], each["size"], each["MD5checksum"]
            is_one = isinstance(key, str) and key and isinstance(size_bytes, int) and _MD5.fullmatch(md5)
        except (KeyError, TypeError):
            is_one = False
        if not is_one:
            faults.append(f"files[{number}]: expected a key, a size and an MD5checksum of 32 hexadecimal digits")
            break
        found.append(DataFile(_place(key, uri), size_bytes, md5))
    places = {each.uri for each in found}
    if len(places) < len(found):
        faults.append("files lists a data file twice; expected each once")
    return found


def _place(key: str, uri: str) -> str:
    """A data file's URI: in the document's bucket; for a local copy, in the folder `data` next to the document's."""
    if is_s3(uri):
        bucket = uri.partition("://")[2].partition("/")[0]
        return f"s3://{bucket}/{key}"
    return f"{uri.rsplit('/', 2)[0]}/data/{base_name(key)}"

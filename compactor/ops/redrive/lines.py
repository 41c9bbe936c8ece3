"""Writes rejected lines to new input files: byte for byte, one file for each source, in bounded memory."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow as pa

from compactor.core.errors import StagingError, StoreUnavailable
from compactor.core.manifest import ManifestFile
from compactor.core.ports import ObjectStore
from compactor.core.records import RedrivenInput
from compactor.engines.parquet_files import open_parquet
from compactor.ndjson.scratch import scratch_errors

_COLUMNS = ["source_uri", "line_number", "byte_offset", "reason", "raw"]
_BATCH_ROWS = 1_000  # a row group, which is in memory anyway, holds 16 MiB of lines or one line

_SAFE_START = b"{"
"""No byte order mark and no magic bytes of a codec begin so. A blank line goes before any other first line."""

RejectRow = tuple[str, int, int, str, bytes]


@dataclass(frozen=True, slots=True)
class WrittenLines:
    """The new input files."""

    files: tuple[ManifestFile, ...]
    inputs: list[RedrivenInput]  # the source of the lines of each file
    counts: Counter[str]  # lines by reason


def write_lines(
    store: ObjectStore, rejects: Sequence[str], sources: Collection[str], reasons: Collection[str], folder: str
) -> WrittenLines:
    """Write the lines of some files that were rejected for certain reasons to new files in a folder.

    `rejects` are the URIs of the Parquet files with the rejects of one manifest, and `sources` the files whose lines to
    write: rejects of other files are samples, whose lines come again with the whole file. `folder` ends with `/`.

    Raises:
        StagingError: The rejects cannot be read, or are not ordered by file and line.
        StoreUnavailable: The store or the local disk fails for now.
    """
    files: list[ManifestFile] = []
    inputs: list[RedrivenInput] = []
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    asked = (row for uri in rejects for row in reject_rows(store, uri) if row[0] in sources and row[3] in reasons)
    with scratch_errors(), TemporaryDirectory(prefix="compactor-") as scratch:
        path = Path(scratch) / "lines.ndjson"
        for source_uri, rows in groupby(asked, key=itemgetter(0)):
            if source_uri in seen:
                raise StagingError(f"rejects of {source_uri} are in two places; expected them in one")
            seen.add(source_uri)
            with path.open("wb") as target:
                lines = _write(rows, target, counts)
            uri = f"{folder}{len(files):06d}.ndjson"
            store.upload(uri, path)
            files.append(_named(store, uri))
            inputs.append(RedrivenInput(uri=uri, source_uri=source_uri, lines=lines))
    return WrittenLines(tuple(files), inputs, counts)


def _write(rows: Iterator[RejectRow], target: BinaryIO, counts: Counter[str]) -> int:
    """Write the lines of one source, joining the pieces of long lines; returns the number of lines."""
    lines = 0
    previous = (0, -1)
    for source_uri, line_number, byte_offset, reason, raw in rows:
        if (line_number, byte_offset) <= previous:
            raise StagingError(
                f"rejects of {source_uri}: line {line_number}, byte {byte_offset} comes after line {previous[0]}, "
                f"byte {previous[1]}; expected the order of the file"
            )
        if line_number != previous[0]:
            if lines or not raw.startswith(_SAFE_START):
                target.write(b"\n")
            lines += 1
            counts[reason] += 1
        target.write(raw)
        previous = line_number, byte_offset
    target.write(b"\n")
    return lines


def reject_rows(store: ObjectStore, uri: str) -> Iterator[RejectRow]:
    """Yield the rows of one Parquet file with rejects: source, line number, byte offset, reason and raw bytes."""
    file, _ = open_parquet(store, uri)
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=_COLUMNS):
            columns: list[list[Any]] = [batch.column(name).to_pylist() for name in _COLUMNS]
            yield from zip(*columns, strict=True)
    except (pa.ArrowInvalid, OSError, KeyError) as exc:
        raise StagingError(f"{uri}: {exc}; expected a whole Parquet file of rejects") from exc


def _named(store: ObjectStore, uri: str) -> ManifestFile:
    info = store.stat(uri)
    if info is None:
        raise StoreUnavailable(f"{uri}: it was gone right after it was written")
    return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)

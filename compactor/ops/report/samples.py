"""Reads a few rejected lines of a reason from the files of rejects."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet
from compactor.ops.report.figures import SHOWN_BYTES, Sample

_ROW_GROUPS = 4
"""Row groups of a file that are searched, each of 16 MiB of lines at most, or of one line."""

_COLUMNS = ["source_uri", "line_number", "raw"]


def samples_of(store: ObjectStore, uris: Iterable[str], reason: str, limit: int) -> list[Sample]:
    """The first few lines that were rejected for a reason. Files that cannot be read have none.

    Args:
        store: Where the rejects are.
        uris: The files of one manifest's rejects.
        reason: Why the lines were rejected.
        limit: How many lines at most.
    """
    found: list[Sample] = []
    for uri in uris:
        try:
            for row in _rows(store, uri, reason):
                found.append(_sample(row))
                if len(found) == limit:
                    return found
        except (StagingError, pa.ArrowException, OSError, KeyError):
            continue  # a report of the rest is worth more; `verify` names what is damaged
    return found


def _rows(store: ObjectStore, uri: str, reason: str) -> Iterator[dict[str, Any]]:
    file, _ = open_parquet(store, uri)
    for number in range(min(_ROW_GROUPS, file.num_row_groups)):
        # The reasons are read first: they are short, and many row groups have none of the lines.
        reasons = file.read_row_group(number, columns=["reason"]).column("reason").to_pylist()
        if reason in reasons:
            yield from _rows_at(file, number, [index for index, each in enumerate(reasons) if each == reason])


def _rows_at(file: pq.ParquetFile, row_group: int, indices: list[int]) -> Iterator[dict[str, Any]]:
    table = file.read_row_group(row_group, columns=_COLUMNS)
    for index in indices:
        [row] = table.slice(index, 1).to_pylist()
        yield row


def _sample(row: dict[str, Any]) -> Sample:
    raw = bytes(row["raw"])
    head = raw[:SHOWN_BYTES].decode(errors="backslashreplace")
    return Sample(str(row["source_uri"]), int(row["line_number"]), head, len(raw))

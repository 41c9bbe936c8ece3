"""Reads a few rejected lines of a reason from the files of rejects."""

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet
from compactor.ops.report.figures import SHOWN_BYTES, Sample

_ROW_GROUPS = 4
"""Row groups that are searched in a file. Each holds at most 16 MiB of lines, or one line."""

_COLUMNS = ["source_uri", "line_number", "raw"]


def samples_of(store: ObjectStore, uris: Iterable[str], reason: str, limit: int) -> list[Sample]:
    """The first lines that a manifest rejected for a reason, `limit` at most. Files that cannot be read have none."""
    found: list[Sample] = []
    for uri in uris:
        try:
            found += islice(_samples(store, uri, reason), limit - len(found))
        except (StagingError, pa.ArrowException, OSError, KeyError):
            continue  # a report of the rest is worth more; `verify` names what is damaged
    return found


def _samples(store: ObjectStore, uri: str, reason: str) -> Iterator[Sample]:
    file, _ = open_parquet(store, uri)
    for number in range(min(_ROW_GROUPS, file.num_row_groups)):
        # The reasons are read first: they are short, and many row groups have none of the lines.
        reasons = file.read_row_group(number, columns=["reason"]).column("reason").to_pylist()
        if reason in reasons:
            table = file.read_row_group(number, columns=_COLUMNS)
            for index, each in enumerate(reasons):
                if each == reason:
                    yield _sample(*(table.column(name)[index].as_py() for name in _COLUMNS))


def _sample(source_uri: str, line_number: int, raw: bytes) -> Sample:
    return Sample(source_uri, line_number, raw[:SHOWN_BYTES].decode(errors="backslashreplace"), len(raw))

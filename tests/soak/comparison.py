"""Sets every line that was fed against the output and the rejects, row by row, without asking the ledger."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow.parquet as pq

from compactor.core.documents.changes import DeadLetter
from compactor.core.layout import Layout, base_name
from compactor.core.ports import ObjectStore
from tests.soak.feeder import Fate, Fed, Record
from tests.soak.files import SoakFile, make_file

_BATCH_ROWS = 2000
_SHOWN = 20

_made = lru_cache(maxsize=64)(make_file)  # the rows of a file lie side by side


@dataclass(slots=True)
class Comparison:
    """What was found.

    Attributes:
        good_lines: That had to become rows; those of replaced files that may become none are left out.
        bad_lines: That had to become rejects.
        lost: Lines that are nowhere.
        doubled: Lines that are there once too often.
        differences: All else: another value, reason or byte, lines that were not fed, files in part, dead letters.
        letters: Dead letters by reason.
        good_letters: Those of them whose manifest nothing is wrong with.
        shown: The first of them in words.
    """

    good_lines: int = 0
    bad_lines: int = 0
    lost: int = 0
    doubled: int = 0
    differences: int = 0
    letters: Counter[str] = field(default_factory=Counter)
    good_letters: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.doubled or self.differences)

    def note(self, what: str) -> None:
        """Keep the first few in words."""
        if len(self.shown) < _SHOWN:
            self.shown.append(what)

    def differs(self, what: str) -> None:
        self.differences += 1
        self.note(what)


def compare(store: ObjectStore, layout: Layout, record: Record) -> Comparison:
    """Read all of the output and the rejects, a batch of rows at a time.

    Args:
        store: Where they are.
        layout: Their places.
        record: What was fed.
    """
    found = Comparison()
    _compare_rows(store, layout, record, found)
    _compare_rejects(store, layout, record, found)
    _compare_dead_letters(store, layout, record, found)
    return found


def _compare_rows(store: ObjectStore, layout: Layout, record: Record, found: Comparison) -> None:
    by_prefix = {fed.spec.prefix: fed for fed in record.files}
    seen: dict[str, bytearray] = {fed.spec.prefix: bytearray(len(_file(fed).rows)) for fed in record.files}
    for row in _rows(store, f"{layout.output}/"):
        prefix, _, number = str(row.get("id")).rpartition("-")
        fed = by_prefix.get(prefix)
        index = int(number) if number.isdigit() else -1
        if fed is None or not 0 <= index < len(seen[prefix]):
            found.differs(f"a row that was not fed: {row}")
            continue
        seen[prefix][index] = min(seen[prefix][index] + 1, 255)
        values = {key: value for key, value in row.items() if value is not None and not key.startswith("_")}
        if values != _file(fed).rows[index]:
            found.differs(f"{fed.uri}: expected {_file(fed).rows[index]}, found {values}")
    for prefix, counts in seen.items():
        _settle(by_prefix[prefix], counts, found)


def _settle(fed: Fed, counts: bytearray, found: Comparison) -> None:
    """Whether a file's rows are there as often as they must be."""
    present = sum(map(bool, counts))
    found.doubled += sum(count - 1 for count in counts if count)
    if present < sum(counts):
        found.note(f"{fed.uri} ({fed.spec.prefix}): {sum(counts) - present} rows doubled")
    if fed.fate is Fate.ONCE:
        found.good_lines += len(counts)
        found.lost += len(counts) - present
        if present < len(counts):
            found.note(f"{fed.uri} ({fed.spec.prefix}): {len(counts) - present} of {len(counts)} rows lost")
    elif present not in ({0, len(counts)} if fed.fate is Fate.ALL_OR_NONE else {0}):
        found.differs(f"{fed.uri} ({fed.spec.prefix}): {present} of {len(counts)} rows, expected {fed.fate}")


def _compare_rejects(store: ObjectStore, layout: Layout, record: Record, found: Comparison) -> None:
    expected = {(fed.uri, line): bad for fed in record.files for line, bad in _file(fed).bad.items()}
    found.bad_lines = len(expected)
    bytes_seen = dict.fromkeys(expected, 0)
    for row in _rows(store, layout.rejects_folder):
        place = row["source_uri"], row["line_number"]
        bad = expected.get(place)
        if bad is None:
            found.differs(f"a reject that was not fed: {place} {row['raw'][:80]!r}")
            continue
        # A line that is too long comes in pieces, each with its place.
        start = row["byte_offset"] - bad.offset
        if row["reason"] != bad.reason or start < 0 or bad.raw[start : start + len(row["raw"])] != row["raw"]:
            found.differs(f"{place}: expected {bad.reason} {bad.raw[:80]!r}, found {row['reason']} {row['raw'][:80]!r}")
        bytes_seen[place] += len(row["raw"])
    for place, seen in bytes_seen.items():
        whole = len(expected[place].raw)
        if seen == 0:
            found.lost += 1
            found.note(f"{place}: no reject, expected {expected[place].reason}")
        elif seen % whole:
            found.differs(f"{place}: {seen} bytes of a reject, expected {whole}")
        elif seen > whole:
            found.doubled += seen // whole - 1
            found.note(f"{place}: rejected {seen // whole} times")


def _compare_dead_letters(store: ObjectStore, layout: Layout, record: Record, found: Comparison) -> None:
    letters, there = record.expected.letters, dict[str, str]()
    for info in store.list(layout.failed_folder):
        if info.uri.endswith(".reason.json"):
            letter = DeadLetter.model_validate_json(store.read(info.uri))
            there[base_name(info.uri).removesuffix(".reason.json")] = letter.reason
    found.letters.update(there.values())
    for manifest_id in sorted(there.keys() | letters.keys()):
        expected, reason = letters.get(manifest_id), there.get(manifest_id)
        if expected != reason:
            found.good_letters += expected is None
            found.differs(f"manifest {manifest_id}: dead letter for {reason}, expected {expected}")


def _rows(store: ObjectStore, folder: str) -> Iterator[Mapping[str, Any]]:
    for info in store.list(folder):
        file = pq.ParquetFile(io.BytesIO(store.read(info.uri)))
        for batch in file.iter_batches(_BATCH_ROWS):
            yield from batch.to_pylist()


def _file(fed: Fed) -> SoakFile:
    return _made(fed.spec)

"""Reads what a contender wrote, and accounts for every line of the set."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.scoreboard.sets import DataSet
from bench.scoreboard.truth import Truth
from bench.scoreboard.values import Match, at_path, identity, match

_BATCH_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the lines of a set.

    Attributes:
        rows: All rows that were written.
        good: Good lines that are rows, each counted once.
        expected: Good lines.
        doubled: Good lines that are more than one row.
        stray: Rows that no good line has made.
        text: Of the compared values, those with the same characters.
        value: Those that are the same value in another form.
        different: Those that are another value, or lost.
        example: The first key of which a value is different; empty if none is.
        late: Lines with the late key that kept its value.
        late_expected: Lines with the late key.
    """

    rows: int
    good: int
    expected: int
    doubled: int
    stray: int
    text: int
    value: int
    different: int
    example: str
    late: int
    late_expected: int

    @property
    def compared(self) -> int:
        """Values that were compared."""
        return self.text + self.value + self.different

    def disagreement(self) -> str:
        """Why these are not the rows and values of the raw text, in words; empty if they are."""
        found = []
        if self.good < self.expected:
            found.append(f"{self.expected - self.good:,} of {self.expected:,} lines are no row")
        if self.doubled:
            found.append(f"{self.doubled:,} lines are more than one row")
        if self.stray:
            found.append(f"{self.stray:,} rows are no good line")
        if self.different:
            found.append(f"{self.different:,} of {self.compared:,} values differ, the first in `{self.example}`")
        return "; ".join(found)


def read_account(chosen: DataSet, truth: Truth, output: Path) -> Account:
    """Compare the Parquet files below a folder with the raw text."""
    rows: Counter[str] = Counter()
    matches: Counter[Match] = Counter()
    total = late = 0
    example = ""
    for file in sorted(output.rglob("*.parquet")):
        with pq.ParquetFile(file) as parquet:
            total += parquet.metadata.num_rows
            if chosen.key not in parquet.schema_arrow.names:
                continue
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                keys = [identity(each) for each in batch.column(chosen.key).to_pylist()]
                rows.update(keys)
                for key, row in _wanted(batch, keys, truth):
                    if key in truth.late:
                        late += at_path(row, chosen.late) == truth.late[key]
                        continue
                    for name, raw in truth.sample[key].items():
                        found = match(raw, row.get(name))
                        matches[found] += 1
                        example = example or (name if found is Match.DIFFERENT else "")
    good = {key: rows[key] for key in truth.good if key in rows}
    return Account(
        rows=total,
        good=len(good),
        expected=len(truth.good),
        doubled=sum(number > 1 for number in good.values()),
        stray=total - sum(good.values()),
        text=matches[Match.TEXT],
        value=matches[Match.VALUE],
        different=matches[Match.DIFFERENT],
        example=example,
        late=late,
        late_expected=len(truth.late),
    )


def _wanted(batch: pa.RecordBatch, keys: list[str], truth: Truth) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a batch that are compared, each with its key."""
    at = [number for number, key in enumerate(keys) if key in truth.sample or key in truth.late]
    return list(zip([keys[each] for each in at], batch.take(pa.array(at, pa.int64())).to_pylist(), strict=True))

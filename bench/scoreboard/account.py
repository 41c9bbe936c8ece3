"""Reads what a contender wrote, and accounts for every line of the set."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.scoreboard.sets import DataSet
from bench.scoreboard.truth import Truth
from bench.scoreboard.values import Match, at_path, identity, match

_BATCH_ROWS = 8_192
_CORRUPT = "_corrupt_record"


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
        corrupt: Rows that hold the text of a line in Spark's column for corrupt records.
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
    corrupt: int = 0

    @property
    def compared(self) -> int:
        """Values that were compared."""
        return self.text + self.value + self.different

    def losses(self) -> str:
        """The disagreement, and the late keys that are lost, in words; empty if there is neither."""
        lost = self.late_expected - self.late
        late = f"{lost:,} of {self.late_expected:,} late keys are lost" if lost else ""
        return "; ".join(filter(None, (self.disagreement(), late)))

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
    tally = _Tally(chosen, truth)
    for file in sorted(output.rglob("*.parquet")):
        with pq.ParquetFile(file) as parquet:
            tally.total += parquet.metadata.num_rows
            if chosen.key in parquet.schema_arrow.names:
                for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                    tally.add(batch)
    return tally.account()


class _Tally:
    """Counts rows and values, batch by batch.

    Attributes:
        total: All rows, with those that have no column for the key.
    """

    def __init__(self, chosen: DataSet, truth: Truth) -> None:
        self.total = 0
        self._chosen = chosen
        self._truth = truth
        self._rows: Counter[str] = Counter()
        self._matches: Counter[Match] = Counter()
        self._late = self._corrupt = 0
        self._example = ""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch, and compare those that are in the sample or have the late key."""
        keys = [identity(each) for each in batch.column(self._chosen.key).to_pylist()]
        self._rows.update(keys)
        if _CORRUPT in batch.schema.names:
            self._corrupt += batch.num_rows - batch.column(_CORRUPT).null_count
        at = [number for number, key in enumerate(keys) if key in self._truth.sample or key in self._truth.late]
        for number, row in zip(at, batch.take(pa.array(at, pa.int64())).to_pylist(), strict=True):
            key = keys[number]
            if key in self._truth.late:
                self._late += at_path(row, self._chosen.late) == self._truth.late[key]
            else:
                self._compare(self._truth.sample[key], row)

    def _compare(self, raw: Mapping[str, str], row: Mapping[str, Any]) -> None:
        for name, text in raw.items():
            found = match(text, row.get(name))
            self._matches[found] += 1
            if found is Match.DIFFERENT:
                self._example = self._example or name

    def account(self) -> Account:
        """What was counted."""
        good = {key: self._rows[key] for key in self._truth.good if key in self._rows}
        return Account(
            rows=self.total,
            good=len(good),
            expected=len(self._truth.good),
            doubled=sum(number > 1 for number in good.values()),
            stray=self.total - sum(good.values()),
            text=self._matches[Match.TEXT],
            value=self._matches[Match.VALUE],
            different=self._matches[Match.DIFFERENT],
            example=self._example,
            late=self._late,
            late_expected=len(self._truth.late),
            corrupt=self._corrupt,
        )

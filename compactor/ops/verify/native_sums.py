"""Adds up rows and lines with the native kernel.

Its line reader shares no code with the one that makes rows. Python reads the lines on which the kernel is undecided,
and a sample of all others. If both differ on a line, Python reads the whole input.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from compactor.core.errors import StagingError
from compactor.ndjson.inspection import BLANK, BLANK_LINE, refusals
from compactor.ndjson.lines import Judged, Limits, LineCounts, Receiver, Refused, Reject, Splitter
from compactor.ops.verify.row_sums import SOURCE, FileColumns, LineSums, Row, RowSums, Sum, batches
from compactor.schema.column_types import ColumnType
from compactor.table.merging.committed_rows import OpenedRows

KernelArray = tuple[int, bytes | None, bytes | None, bytes, list["KernelArray"]]
"""The offset of an Arrow array; its buffers if it has them: validity, offsets, data; and the arrays of its parts."""

KernelSum = tuple[int, int]
"""A number of rows, and the sum of their digests."""


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Some rows. The native module reads these fields by name.

    Attributes:
        rows: The number of rows.
        columns: Columns by number. A non-text column may come as canonical texts.
        ends: The row after the last one of each sum, where the next sum starts.
        rescued: The maps of the rescued data.
        moved: Columns whose values are among the rescued data.
        retired: Text columns that count as rescued data, by key.
    """

    rows: int
    columns: list[tuple[int, KernelArray]]
    ends: list[int]
    rescued: KernelArray | None = None
    moved: list[int] = field(default_factory=list)
    retired: list[tuple[str, KernelArray]] = field(default_factory=list)


class DigestKernel(Protocol):
    """Adds up digests of rows. Safe for many threads. Columns are numbered from 0."""

    def lines(
        self, block: bytes, constants: Sequence[tuple[str, str]]
    ) -> tuple[int, int, Sequence[tuple[int, int, int]], KernelSum]:
        """Add up lines as the rows they should become.

        Args:
            block: Whole lines, each with its line feed.
            constants: Texts by key, for lines without that key.

        Returns:
            The number of lines, the number of blank lines, the lines that may not be records (number, offset, and
            offset of the line feed of each), and the sum of all others.
        """

    def rows(self, given: KernelRows) -> list[KernelSum]:
        """Add up rows.

        Raises:
            ValueError: The arrays have different lengths or types.
        """


NewDigestKernel = Callable[[Mapping[str, ColumnType]], DigestKernel]
"""Makes a kernel for columns, by key."""

BLOCK_BYTES = 1024 * 1024  # read in one kernel call
SAMPLED_BYTES = 32 * 1024  # Python also reads one line per this many bytes,
SAMPLED_SHARE = 200  # but at most one byte in this many after the first ones, as it takes fifty times as long


class ParsersDifferError(Exception):
    """Two readers read the same line differently."""


@dataclass(frozen=True)
class NativeSums(RowSums):
    """`RowSums` by a kernel."""

    new_kernel: NewDigestKernel

    @cached_property
    def _kernel(self) -> DigestKernel:
        columns = {each.key: each.column_type for each in self.shape.schema.columns if each.key is not None}
        return self.new_kernel(columns)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.shape.names)}

    def lines(self, path_columns: Mapping[str, str]) -> LineSums:
        """See `RowSums`."""
        return _NativeLines(self.shape, self.digest, path_columns, kernel=self._kernel)

    def written(self, opened: OpenedRows, columns: FileColumns, *, by_source: bool) -> Iterator[tuple[str, Sum]]:
        """See `RowSums`."""
        numbers = self._numbers
        moved = [numbers[key] for key in columns.moved]
        for batch in batches(opened, columns, by_source=by_source):
            sources, ends = _runs(batch.column(SOURCE)) if by_source else ([""], [batch.num_rows])
            # Most of thousands of columns are empty in a batch.
            present = ((numbers[key], batch.column(name)) for key, name in columns.present.items())
            given = KernelRows(
                batch.num_rows,
                [(number, _array(array)) for number, array in present if array.null_count < len(array)],
                ends,
                _array(batch.column(columns.rescued)) if columns.rescued else None,
                moved,
                [(key, _array(batch.column(name).cast(pa.string()))) for name, key in columns.retired.items()],
            )
            sums = self._kernel.rows(given)
            for source, (rows, total) in zip(sources, sums, strict=True):
                yield source, Sum(rows, total)

    def digest(self, rows: Sequence[Row]) -> Sum:
        """See `RowSums`."""
        columns = zip(self._numbers.values(), zip(*(row.values for row in rows), strict=True), strict=True)
        ends = [0]
        for row in rows:
            ends.append(ends[-1] + len(row.rescued))
        entries = [entry for row in rows for entry in row.rescued]
        keys, values = (pa.array([entry[at] for entry in entries], pa.string()) for at in (0, 1))
        offsets = pa.array(ends, pa.int32()).buffers()[1].to_pybytes()
        maps = (0, None, offsets, b"", [_array(keys), _array(values)])
        # Of thousands of columns, a few rows use few.
        there = [(number, column) for number, column in columns if any(value is not None for value in column)]
        texts = [(number, _array(pa.array(column, pa.string()))) for number, column in there]
        found = self._kernel.rows(KernelRows(len(rows), texts, [len(rows)], maps))
        return Sum(*found[0])


@dataclass
class _NativeLines(LineSums):
    kernel: DigestKernel = field(kw_only=True)
    _sampled_bytes_left: int = SAMPLED_BYTES  # Python's remaining budget

    def read(
        self,
        pieces: Iterable[bytes],
        limits: Limits,
        *,
        split: Splitter,
        refused: frozenset[bytes],
        on_reject: Callable[[Reject], None],
    ) -> LineCounts:
        """See `LineSums`.

        Raises:
            ParsersDifferError: The kernel and Python read a line differently.
        """
        if refused:
            return super().read(pieces, limits, split=split, refused=refused, on_reject=on_reject)
        return split(pieces, Receiver(limits, self._judge, on_reject, BLOCK_BYTES))

    def _judge(self, block: bytes) -> Judged:
        lines, blank_lines, doubtful, (rows, total) = self.kernel.lines(block, tuple(self.path_columns.items()))
        self.sum.merge(Sum(rows, total))
        if records := [*self._sample(block, {start for _, start, _ in doubtful})]:
            self._compare(records)
        return Judged(lines, blank_lines, self._judged(doubtful, block))

    def _sample(self, block: bytes, doubtful: AbstractSet[int]) -> Iterator[bytes]:
        """A sample of a block's records, without the lines that start at doubtful places."""
        self._sampled_bytes_left += len(block) // SAMPLED_SHARE
        end = -1
        for at in range(min(SAMPLED_BYTES, len(block)) // 2, len(block), SAMPLED_BYTES):
            if at <= end:
                continue
            start, end = block.rfind(b"\n", 0, at) + 1, block.index(b"\n", at)
            if start not in doubtful and end - start <= self._sampled_bytes_left and block[start:end].strip(BLANK):
                self._sampled_bytes_left -= end - start
                yield block[start:end]

    def _compare(self, records: Sequence[bytes]) -> None:
        slow = LineSums(self.shape, self.digest, self.path_columns)
        block = b"".join(line + b"\n" for line in records)
        slow.add_records(block)
        _, _, doubtful, found = self.kernel.lines(block, tuple(self.path_columns.items()))
        if doubtful or Sum(*found) != slow.sum or next(refusals(records), None) is not None:
            raise ParsersDifferError

    def _judged(self, doubtful: Sequence[tuple[int, int, int]], block: bytes) -> list[Refused]:
        """Add the doubtful lines that are records after all; return the others."""
        raws = [block[start:end] for _, start, end in doubtful]
        reasons = dict(refusals(raws))
        if BLANK_LINE in reasons.values():
            raise ParsersDifferError
        if good := [raw for at, raw in enumerate(raws) if at not in reasons]:
            self.add_records(b"".join(raw + b"\n" for raw in good))
        return [
            (number, start, reasons[at], raws[at]) for at, (number, start, _) in enumerate(doubtful) if at in reasons
        ]


def _runs(sources: pa.Array) -> tuple[list[str], list[int]]:
    """The source of each run of rows, and the run's end."""
    runs = pc.run_end_encode(sources)
    return runs.values.to_pylist(), runs.run_ends.to_pylist()


def _array(array: pa.Array) -> KernelArray:
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    parts = list[pa.Array]()
    match array.buffers():
        case [valid, *_] if pa.types.is_struct(kind):
            offsets = data = None
            parts = [array.field(at) for at in range(kind.num_fields)]
        case [valid, offsets, *_] if pa.types.is_list(kind):
            parts, data = [array.values], None
        case [valid, offsets, *_] if pa.types.is_map(kind):
            parts, data = [array.keys, array.items], None
        case [valid, data]:
            offsets = None
        case [valid, offsets, data] if pa.types.is_string(kind):
            pass
        case _:
            raise StagingError(f"a column of type {kind}; expected text, values of a fixed width, or these in others")
    return array.offset, _bytes(valid), _bytes(offsets), _bytes(data) or b"", [*map(_array, parts)]


def _bytes(buffer: pa.Buffer | None) -> bytes | None:
    return None if buffer is None else buffer.to_pybytes()

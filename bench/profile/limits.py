"""Measures what the work of a stage takes at best: on the same machine, input and output, by the simplest fast program.

A limit is a yardstick, no proof: a stage may do without some of that work, and then it takes less.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3
from zlib_ng import zlib_ng

from bench.profile.stages import Stage

MEANING = {
    Stage.READ: "`read` of each file into the same buffer",
    Stage.DECODE: "zlib-ng",
    Stage.UTF8: "one look at each byte: `memchr`",
    Stage.SCAN: "a stop at each quote: `bytes.count`",
    Stage.KEYS: "comparing the bytes of the keys: `memcmp`",
    Stage.BUILD: "copying each byte once: `memcpy`",
    Stage.DICTIONARY: "`dictionary_encode` of Arrow C++, of the columns that have one",
    Stage.ENCODE: "Arrow C++, PLAIN without compression and statistics",
    Stage.COMPRESS: "snappy's own library, of the same columns",
    Stage.STATISTICS: "`min_max` of Arrow C++",
    Stage.WRITE: "`write` of the output",
    Stage.HASH: "BLAKE3 of the input as stored, on one core",
    Stage.VERIFY: "reading the footers by Arrow C++",
}
"""What is measured for each stage. Python should take nothing, and `other` is not known."""

_REPEATS = 3
_BUFFER_BYTES = 1024 * 1024
_MOST_CELLS = 2**26
_KEYED_LINES = 200


@dataclass(frozen=True, slots=True)
class Probed:
    """Output to measure with: the first of it, if it has many cells.

    Attributes:
        table: Its rows.
        with_dictionary: The names of columns whose values are in dictionaries.
        scale: Rows of all output by rows of the table.
    """

    table: pa.Table
    with_dictionary: Sequence[str]
    scale: float


def limits(source: Path, output: Path, work: Path) -> Mapping[Stage, float]:
    """Measure the limit of each stage.

    Args:
        source: The input.
        output: The Parquet that was made of it.
        work: A folder for a file.

    Returns:
        CPU seconds for all the input, on one core: the least of three measurements. Without stages that have no limit.
    """
    files, made = sorted(filter(Path.is_file, source.iterdir())), sorted(output.rglob("*.parquet"))
    found = _of_input(files) | _of_output(_probed(made))
    bytes_of_output = [path.read_bytes() for path in made]
    found[Stage.WRITE] = _least(lambda: _write(work / "written", bytes_of_output))
    found[Stage.VERIFY] = _least(lambda: [pq.read_metadata(path) for path in made])
    return found


def _of_input(files: Sequence[Path]) -> dict[Stage, float]:
    stored = [path.read_bytes() for path in files]
    found = {
        Stage.READ: _least(lambda: _read(files)),
        Stage.HASH: _least(lambda: [blake3(each).digest() for each in stored]),
    }
    decoded = stored
    if stored[0].startswith(b"\x1f\x8b"):
        found[Stage.DECODE] = _least(lambda: [zlib_ng.decompress(each, wbits=31) for each in stored])
        decoded = [zlib_ng.decompress(each, wbits=31) for each in stored]
    data = b"".join(decoded)
    copy = bytearray(data)
    found[Stage.UTF8] = _least(lambda: data.find(b"\0"))
    found[Stage.SCAN] = _least(lambda: data.count(b'"'))
    found[Stage.KEYS] = _share_of_keys(data) * _least(lambda: copy == data)
    into = memoryview(copy)  # a bytearray itself would make a second copy of what it gets
    found[Stage.BUILD] = _least(lambda: into.__setitem__(slice(None), data))
    return found


def _of_output(probed: Probed) -> dict[Stage, float]:
    table, named = probed.table, probed.with_dictionary
    packed = pa.BufferOutputStream()
    pq.write_table(table, packed, compression="none", use_dictionary=list(named), write_statistics=False)
    pages = memoryview(packed.getvalue())
    codec = pa.Codec("snappy")
    works: Mapping[Stage, Callable[[], object]] = {
        Stage.DICTIONARY: lambda: [table[name].dictionary_encode() for name in named],
        Stage.ENCODE: lambda: _encode(table),
        Stage.COMPRESS: lambda: [
            codec.compress(pages[at : at + _BUFFER_BYTES]) for at in range(0, len(pages), _BUFFER_BYTES)
        ],
        Stage.STATISTICS: lambda: [pc.min_max(column) for column in table.columns if not pa.types.is_map(column.type)],
    }
    return {stage: probed.scale * _least(work) for stage, work in works.items()}


def _probed(made: Sequence[Path]) -> Probed:
    opened = [pq.ParquetFile(path) for path in made]
    footer = opened[0].metadata
    columns = len(footer.schema)
    most_rows = max(1, _MOST_CELLS // columns)
    batches, rows = [], 0
    for batch in _batches(opened, min(most_rows, 65_536)):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= most_rows:
            break
    group = footer.row_group(0)
    flat = [group.column(at) for at in range(columns)]
    with_dictionary = {each.path_in_schema for each in flat if each.has_dictionary_page and "PLAIN" not in _data(each)}
    table = pa.Table.from_batches(batches)
    names = [name for name in table.column_names if name in with_dictionary]
    return Probed(table, names, sum(each.metadata.num_rows for each in opened) / rows)


def _data(column: pq.ColumnChunkMetaData) -> Sequence[str]:
    """The encodings of data pages. The first is that of the dictionary, or it is given again for pages without one."""
    encodings = list(column.encodings)
    encodings.remove("PLAIN")
    return encodings


def _batches(opened: Sequence[pq.ParquetFile], rows: int) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(file.iter_batches(batch_size=rows, use_threads=False) for file in opened)


def _share_of_keys(data: bytes) -> float:
    """The share of bytes that are keys of the outermost objects, by the first lines."""
    lines = data[: data.rindex(b"\n", 0, 64 * _BUFFER_BYTES)].splitlines()[:_KEYED_LINES]
    keys = sum(len(key.encode()) for line in lines for key in orjson.loads(line))
    return keys / sum(map(len, lines))


def _read(files: Sequence[Path]) -> None:
    buffer = bytearray(_BUFFER_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def _write(path: Path, parts: Sequence[bytes]) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for part in parts:
            os.write(file, part)
    finally:
        os.close(file)
        path.unlink()


def _encode(table: pa.Table) -> None:
    pq.write_table(table, pa.MockOutputStream(), compression="none", use_dictionary=False, write_statistics=False)


def _least(work: Callable[[], object]) -> float:
    took = []
    for _ in range(_REPEATS):
        before = time.process_time()
        work()
        took.append(time.process_time() - before)
    return min(took)

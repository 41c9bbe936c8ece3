"""What the tests of `data erase` share: lines of persons in every guise, and a search for what is left of them."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Inputs
from compactor.core.ports import ObjectStore
from compactor.ops.erase.eraser import EraseReport
from compactor.wiring.rebuilding import eraser
from tests.support.harness import Harness

ALICE = "alice-7f3a"
_ESCAPED = "".join(f"\\u{ord(character):04x}" for character in ALICE)

PLAIN = f'{{"n": 1, "user_id": "{ALICE}"}}\n{{"n": 2, "user_id": "bob"}}\n'.encode()
ESCAPED = f'{{"n": 3, "user_id": "{_ESCAPED}"}}\n{{"n": 4, "user_id": "{ALICE}-not"}}\n{{"n": 5}}\n'.encode()
LISTED = f'{{"n": 6, "user_id": ["carol", "{ALICE}"]}}\n{{"n": 7, "user_id": "carol"}}\n'.encode()
BROKEN = (
    f'{{"n": 8, "user_id": "{ALICE}"\n{{"user_id": "{_ESCAPED}\n[{{"user_id": "{ALICE}"}}]\n[8]\nno json\n'.encode()
)
OTHERS = b'{"n": 9, "user_id": "dave"}\nno json\n'

ROWS, REJECTS = 3, 3
"""What is Alice's in one manifest of the first four."""


def deliver(harness: Harness) -> None:
    """Two manifests with rows and rejects of Alice, one of them compressed, and one without."""
    harness.deliver("m1", PLAIN, ESCAPED, LISTED, BROKEN)
    harness.deliver("m2", *(gzip.compress(each) for each in (PLAIN, ESCAPED, LISTED, BROKEN)))
    harness.deliver("m3", OTHERS)


def erase(
    harness: Harness,
    *values: str,
    key: str = "user_id",
    inputs: Inputs = "delete",
    store: ObjectStore | None = None,
    on_crash_point: OnCrashPoint = ignore_crash_point,
    dry_run: bool = False,
) -> EraseReport:
    """One erasure, in a process of its own."""
    app = harness.app(store=store, on_crash_point=on_crash_point)
    found = eraser(app, key=key, values=frozenset(values or (ALICE,)), inputs=inputs, by="privacy")
    return found.erase(found.scanner.scan(), dry_run=dry_run)


def holding(harness: Harness, value: str = ALICE) -> list[str]:
    """The objects of a harness that have a value; see `holding_in`."""
    return holding_in(harness.store, f"{harness.root}/", value)


def holding_in(store: ObjectStore, place: str, value: str = ALICE) -> list[str]:
    """The objects that have a value as a word, however it is encoded; their own names count, too."""
    words, found = _words(value), list[str]()
    for info in store.list(place):
        data = store.read(info.uri)
        readings = (info.uri.encode(), unquote(info.uri).encode(), *_readings(data))
        if any(word.search(each) for each in readings for word in words) or _is_in_avro(value, data):
            found.append(info.uri)
    return found


def holding_below(folder: Path, value: str = ALICE) -> list[Path]:
    """The files below a folder that have a value: also temporary ones, which no store lists, and databases."""
    words = _words(value)
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if any(word.search(each) for each in _readings(path.read_bytes()) for word in words)]


def others(harness: Harness) -> tuple[Counter[str], Counter[tuple[str, int, bytes]]]:
    """The rows and the rejects that readers see and that are not Alice's."""
    rows = {row: many for row, many in harness.output_rows().items() if not _word(ALICE).search(row.encode())}
    rejects = {each: many for each, many in harness.rejects().items() if each[2] in {b"[8]", b"no json"}}
    return Counter(rows), Counter(rejects)


def check_tidy(harness: Harness) -> None:
    """Verify finds nothing, and nothing is left lying about."""
    assert harness.verification().discrepancies == []
    left = [info.uri for place in ("staging/", "open/") for info in harness.store.list(f"{harness.root}/state/{place}")]
    assert left == []


def _word(value: str) -> re.Pattern[bytes]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?![\w-])".encode())


def _words(value: str) -> list[re.Pattern[bytes]]:
    """The value as a word in UTF-8; in Latin-1, if that differs; and in UTF-16, which needs no edges to be found."""
    texts = [value.encode("latin-1")] if not value.isascii() else []
    wide = [re.compile(re.escape(value.encode(f"utf-16-{end}"))) for end in ("le", "be")]
    return [_word(value), *(re.compile(re.escape(text)) for text in texts), *wide]


def _readings(data: bytes) -> Iterator[bytes]:
    for each in (data, *_decoded(data)):
        yield each
        if b"\\u" in each:
            yield re.sub(rb"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)).encode(errors="replace"), each)


def _unzstd(data: bytes) -> bytes:
    unzipped: bytes = pa.input_stream(pa.BufferReader(data), "zstd").read()
    return unzipped


_CODECS = (gzip.decompress, bz2.decompress, lzma.decompress, _unzstd)


def _decoded(data: bytes) -> Iterator[bytes]:
    """What compressed bytes are, and of Parquet the footer with its statistics, all values, and all of dictionaries."""
    for decode in _CODECS:
        with suppress(OSError, EOFError, lzma.LZMAError):
            yield decode(data)
    if data.startswith(b"PAR1"):
        found = pq.ParquetFile(io.BytesIO(data))
        yield found.metadata.to_dict().__repr__().encode()
        for column in found.read().columns:
            yield from map(_bytes_of, column.to_pylist())
        # A page of a dictionary may have values that no row has.
        texts = [each.name for each in found.schema_arrow if pa.types.is_string(each.type)]
        for column in pq.read_table(io.BytesIO(data), columns=texts, read_dictionary=texts).columns:
            for chunk in column.chunks:
                yield from map(_bytes_of, chunk.dictionary.to_pylist())


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _is_in_avro(value: str, data: bytes) -> bool:
    """Whether a manifest of a table, or a list of manifests, has a value: as a bound, or as a partition."""
    if not data.startswith(b"Obj\x01"):
        return False
    word = value.encode()  # between lengths, which may look like letters
    return any(word in block.replace(word + b"-not", b"") for block in _avro_blocks(io.BytesIO(data)))


def _avro_blocks(file: io.BytesIO) -> Iterator[bytes]:
    """The blocks of a file of Avro, as the manifests of a table and their lists are, decoded but not parsed."""
    file.seek(4)
    codec = b"null"
    while count := _avro_long(file):
        for _ in range(count):
            key, value = (file.read(_avro_long(file)) for _ in range(2))
            codec = value if key == b"avro.codec" else codec
    assert codec in {b"null", b"deflate"}, codec
    sync = file.read(16)
    while _avro_block_follows(file):
        block = file.read(_avro_long(file))
        assert file.read(len(sync)) == sync
        yield zlib.decompress(block, -zlib.MAX_WBITS) if codec == b"deflate" else block


def _avro_block_follows(file: io.BytesIO) -> bool:
    """Whether there is another block; reads how many records it has."""
    at = file.tell()
    if not file.read(1):
        return False
    file.seek(at)
    _avro_long(file)
    return True


def _avro_long(file: io.BytesIO) -> int:
    found, shift = 0, 0
    while True:
        [byte] = file.read(1)
        found |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (found >> 1) ^ -(found & 1)

"""What the tests of `data erase` share: lines of persons in every guise, and a search for what is left of them."""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

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
    word, found = _word(value), list[str]()
    for info in store.list(place):
        data = store.read(info.uri)
        if any(word.search(each) for each in (info.uri.encode(), *_readings(data))) or _is_in_avro(value, data):
            found.append(info.uri)
    return found


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


def _readings(data: bytes) -> Iterator[bytes]:
    for each in (data, *_decoded(data)):
        yield each
        yield re.sub(rb"\\u00([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), each)


def _decoded(data: bytes) -> Iterator[bytes]:
    with suppress(OSError):
        yield gzip.decompress(data)
    if data.startswith(b"PAR1"):
        yield pq.ParquetFile(io.BytesIO(data)).metadata.to_dict().__repr__().encode()
        for column in pq.read_table(io.BytesIO(data)).columns:
            for value in column.to_pylist():
                yield value if isinstance(value, bytes) else str(value).encode()


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

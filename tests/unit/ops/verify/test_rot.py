"""Bytes change where they are stored: `verify --deep` names it, or neither a reader nor the job sees anything else."""

import io
import os
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.core.errors import CompactorError
from compactor.core.layout import is_within
from compactor.wiring import operating
from tests.support.harness import FLAWED, GOOD, Harness

NEW_KEY = b'{"id": "1", "added": "later"}\n' * 40

SEAL_BYTES = len(',"checksum":""}') + 32

CACHES = ("/recent/", "/unsummarised/", "/archive/")
"""Parts of the state that can be made again from the records, and copies of what these have."""


@pytest.fixture(scope="module")
def harness() -> Harness:
    """Two manifests, the second with a new column, so that there is a columns file."""
    made = Harness()
    for name, *contents in (("m1", GOOD, FLAWED), ("m2", NEW_KEY)):
        made.deliver(name, *contents)
        made.run_once()
    return made


def uris(harness: Harness) -> list[str]:
    layout = harness.layout
    stored = [info.uri for place in (layout.output, layout.state) for info in harness.store.list(f"{place}/")]
    left = (uri for uri in stored if not is_within(uri, layout.manifests_folder))
    return [uri for uri in left if not any(each in uri for each in CACHES)]


def rotten(random: Random, content: bytes, other: bytes) -> bytes:
    """One bit, the rest, some bytes, or everything is another one."""
    at = random.randrange(len(content))
    kind = random.choice(("bit", "bit", "bit", "cut", "zeros", "other"))
    if kind == "bit":
        return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]
    zeros = min(len(content) - at, random.choice((1, 16, 512)))
    return {"cut": content[:at], "zeros": content[:at] + bytes(zeros) + content[at + zeros :], "other": other}[kind]


def seen(content: bytes) -> object:
    """What a reader sees in a Parquet file."""
    try:
        table = pq.read_table(io.BytesIO(content))
        return table.schema, table.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as exc:
        return type(exc)


def found(harness: Harness) -> bool:
    try:
        return bool(operating.verifier(harness.app(), deep=True).verify_all().discrepancies)
    except CompactorError:
        return True


@pytest.mark.parametrize("seed", range(int(os.environ.get("ROT", "80"))))
def test_no_change_of_bytes_goes_unnoticed(harness: Harness, seed: int) -> None:
    random, stored = Random(seed), uris(harness)
    assert any(uri.endswith("columns.parquet") for uri in stored)
    uri = stored[seed % len(stored)]
    content = harness.store.read(uri)
    alike = [each for each in stored if each != uri and each.rpartition(".")[2] == uri.rpartition(".")[2]]
    damaged = rotten(random, content, harness.store.read(random.choice(alike)))
    assert not found(harness)
    harness.store.put(uri, damaged)
    try:
        is_alike = uri.endswith(".parquet") and seen(damaged) == seen(content)
        is_alike |= damaged[:-SEAL_BYTES] == content[:-SEAL_BYTES]  # without a checksum it is not compared
        assert found(harness) or is_alike, f"{uri}: {damaged!r}"
    finally:
        harness.store.put(uri, content)

"""An erasure that says that nothing is left leaves nothing: the bytes of every object are searched, for each kind.

Each kind is killed at changes of the store, and repeated; what a call leaves it has to name, which is exit code 3.
"""

import bz2
import gzip
import json
import lzma
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from compactor.wiring import engines
from tests.support.erasing import ALICE, ESCAPED, LISTED, PLAIN, erase, holding
from tests.support.harness import DiedError, Harness
from tests.support.rebuilding import NEVER, WatchedStore

ZOE = "zoë-7f3a"
MANIFESTS = {"m1", "m2"}
_EVERY = 4


def _line(value: object) -> bytes:
    return json.dumps({"n": 1, "user_id": value}).encode() + b"\n"


_OTHER = b'{"n": 2, "user_id": "bob", "user": {"id": "bob"}}\n'
_IN_OBJECTS = json.dumps({"user": {"id": ALICE}}).encode() + b"\n" + _OTHER


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Lines of a person, as one kind of producers writes them.

    Attributes:
        files: By name; each of two manifests has such files, and one of someone else.
        value: What is erased.
        key: Its key.
        settings: Sections of the settings.
        stays: Folders of the state whose records keep a name with the value; the call lists these manifests.
    """

    files: Mapping[str, bytes]
    value: str = ALICE
    key: str = "user_id"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stays: frozenset[str] = frozenset()


_IN_NAMES = frozenset({"ledger", "accepted", "archive", "schemas", "recent", "unsummarised"})

KINDS = {
    "plain": Kind(files={"a.ndjson": PLAIN}),
    "escaped": Kind(files={"a.ndjson": ESCAPED + ESCAPED.replace(b"\\u006c", b"\\u006C")}),
    "in arrays": Kind(files={"a.ndjson": LISTED + _line([["x", [ALICE]]]) + _OTHER}),
    "in objects": Kind(files={"a.ndjson": _IN_OBJECTS}, key="/user/id"),
    "in JSON text": Kind(files={"a.ndjson": _line(json.dumps([json.dumps([ALICE])])) + _OTHER}),
    "in rescued data": Kind(files={"a.ndjson": PLAIN + ESCAPED}, settings={"schema": {"max_columns": 1}}),
    "in dictionaries": Kind(files={"a.ndjson": b"".join(_line(f"{who}") for who in ("bob", ALICE, "carol") * 30)}),
    "in each codec": Kind(
        files={
            "a.gz": gzip.compress(PLAIN),
            "b.bz2": bz2.compress(PLAIN),
            "c.xz": lzma.compress(PLAIN),
            "d.zst": zstandard.compress(PLAIN),
        }
    ),
    "in rejects": Kind(files={"a.ndjson": PLAIN + f"{{{ALICE}\nof {ALICE.encode().hex()} {ALICE}\n".encode()}),
    "in rejects in Latin-1": Kind(
        files={"a.ndjson": _line(ZOE) + f'{{"user_id": "{ZOE}"\n'.encode("latin-1")}, value=ZOE
    ),
    "in rejects in UTF-16": Kind(
        files={
            f"{end}.ndjson": _line(ZOE) + f'{{"user_id": "{ZOE}"}}\n'.encode(f"utf-16-{end}") for end in ("le", "be")
        },
        value=ZOE,
    ),
    "in a table": Kind(files={"a.ndjson": PLAIN + ESCAPED}, settings={"table": {}}),
    "in names of files": Kind(files={f"of-{ALICE}.ndjson": PLAIN}, stays=_IN_NAMES),
    "in names of folders": Kind(
        files={f"user_id={ALICE}/a.ndjson": b'{"n": 1}\n'}, settings={"reading": {"hive_keys": True}}, stays=_IN_NAMES
    ),
    "in partitions": Kind(
        files={"a.ndjson": PLAIN}, settings={"output": {"partition_by": ["identity(user_id)"]}}, stays=_IN_NAMES
    ),
}


def compacted(kind: Kind) -> Harness:
    harness = Harness(**kind.settings)  # type: ignore[arg-type]
    for manifest_id in MANIFESTS:
        named = [harness.file(f"{manifest_id}-other.ndjson", _OTHER)]
        for name, data in kind.files.items():
            columns = {"user_id": ALICE} if name.startswith("user_id=") else {}
            file = harness.file(f"{name.rpartition('/')[0]}/{manifest_id}-{name.rpartition('/')[2]}".lstrip("/"), data)
            named.append(file.model_copy(update={"path_columns": columns}))
        harness.put_manifest(f"{manifest_id}.json", harness.manifest(manifest_id, named).to_json())
    harness.run_once(engine=engines.partitioned(harness.app(), harness.engine()))
    assert holding(harness, kind.value)
    return harness


def check(kind: Kind, die_at: int) -> int:
    """Erase, killed at a change; returns the number of changes."""
    harness = compacted(kind)
    store = WatchedStore(harness.store, die_at)
    with suppress(DiedError):
        erase(harness, kind.value, key=kind.key, store=store)
    assert store.has_died is (die_at != NEVER)
    report = erase(harness, kind.value, key=kind.key)
    assert (report.failed, report.discrepancies) == ((), ())
    left = holding(harness, kind.value)
    assert bool(report.left) is bool(left), left
    assert {uri.removeprefix(f"{harness.layout.state}/").partition("/")[0] for uri in left} <= kind.stays
    if kind.stays:
        assert {each.manifest_id for each in report.refused} == MANIFESTS
    return store.changes


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_is_left(kind: Kind) -> None:
    """After one call, and after one that was killed in its middle."""
    many = check(kind, NEVER)
    check(kind, many // 2)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_nothing_is_left_after_a_kill(kind: Kind) -> None:
    """At each change of the store; kinds take turns, as all take the same path through most of them."""
    for die_at in range(list(KINDS.values()).index(kind) % _EVERY, check(kind, NEVER), _EVERY):
        check(kind, die_at)


def test_the_search_sees_what_only_a_dictionary_has() -> None:
    """A page of a dictionary has values that no row has any more, unless its rows were written anew."""
    harness = Harness()
    rows = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["bob", ALICE]))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"user_id": rows}), sink, store_schema=False)
    harness.store.put(f"{harness.root}/a.parquet", sink.getvalue().to_pybytes())
    assert holding(harness) == [f"{harness.root}/a.parquet"]

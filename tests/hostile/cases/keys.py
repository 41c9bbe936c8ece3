"""Keys that are the attack: they would use up columns, memory and names."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.hostile.attack import MIB, Attack, Seen
from tests.hostile.scene import ATTACK, Scene

MAX_SCHEMA_BYTES = MIB


def _line(keys: Iterable[str]) -> bytes:
    return json.dumps(dict.fromkeys(keys, "v")).encode() + b"\n"


def _small_schema(scene: Scene) -> str:
    """No version of the schema is large, whatever keys there were."""
    sizes = [info.size_bytes for info in scene.app.store.list(scene.app.layout.schemas_folder)]
    return f"a schema version of {max(sizes)} bytes" if max(sizes) > MAX_SCHEMA_BYTES else ""


def of_keys(
    name: str,
    contents: Callable[[], Iterable[bytes]],
    rows: int,
    *,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    quick: bool = False,
) -> Attack:
    """An attack by the keys of some files, all of which must become rows."""
    files = len(list(contents()))

    def make(scene: Scene) -> None:
        scene.deliver_attack([scene.write(f"{ATTACK}-{n}.ndjson", data) for n, data in enumerate(contents())])

    return Attack(
        name=name,
        kind="keys",
        make=make,
        expected=Seen(statuses={"compacted": files}, rows=rows),
        sections=sections or {},
        also=_small_schema,
        quick=quick,
    )


ATTACKS = (
    of_keys("line-of-100-keys", lambda: [_line(f"k{n}" for n in range(100))], 1, quick=True),
    of_keys("line-of-100000-keys", lambda: [_line(f"k{n}" for n in range(100_000))], 1),
    of_keys(
        "11000-keys-in-each-of-two-files",
        lambda: [_line(f"{file}{n}" for n in range(11_000)) for file in "ab"],
        2,
    ),
    of_keys("new-key-in-each-line", lambda: [b"".join(_line([f"k{n}"]) for n in range(30_000))], 30_000),
    of_keys(
        "long-keys",
        lambda: [b"".join(_line("\U0001f600" * 3_900 + str(100 * n + m) for m in range(100)) for n in range(5))],
        5,
    ),
    of_keys("key-of-10-mib", lambda: [_line(["k" * 10 * MIB])], 1),
    of_keys("key-repeated-in-a-line", lambda: [b'{"k": 0' + b', "k": 1' * 500_000 + b"}\n"], 1),
    of_keys("colliding-names", lambda: [_line("k" + chr(0x4E00 + n) for n in range(1_900))], 1),
    of_keys(
        "names-of-own-columns",
        lambda: [
            _line(
                ["", "\0", "_rescued_data", "_source_file", "_manifest_id", "_processed_at", "a.b", "A_B", "__proto__"]
            )
        ],
        1,
        sections={"schema": {"metadata_columns": ["_source_file", "_manifest_id", "_processed_at"]}},
    ),
    of_keys(
        "exact-names",
        lambda: [_line(["a`b", 'a"b', "a;b", "a,b", "a\nb", "a=b", "a b", "a\\b", " "])],
        1,
        sections={"schema": {"names": "exact"}},
    ),
    of_keys(
        "no-room-for-columns", lambda: [_line(f"k{n}" for n in range(50))], 1, sections={"schema": {"max_columns": 4}}
    ),
)

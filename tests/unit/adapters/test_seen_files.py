"""The memory of files of a local disk."""

from pathlib import Path

import pytest

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.adapters.local.store import LocalStore

SHA_256_OF_ABC = "ba7816bf8f01cfea414140de5dae2223"
BLAKE3_OF_ABC = "b3-6437b3ac38465133ffb63b75273a8db5"


@pytest.mark.parametrize("digests", [(SHA_256_OF_ABC, BLAKE3_OF_ABC), (BLAKE3_OF_ABC, SHA_256_OF_ABC)])
def test_digests_of_both_kinds(digests: tuple[str, str], tmp_path: Path) -> None:
    """A digest that is remembered, within a call or from an earlier one, is given only to compare with one like it."""
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"abc")
    store, memory = LocalStore(), str(tmp_path / "seen.sqlite")
    info = store.stat(str(path))
    assert info is not None
    seen = LocalSeenFiles(store, memory)
    assert [seen.digest(info, like) for like in digests] == list(digests)
    seen.remember([info])
    assert [LocalSeenFiles(store, memory).digest(info, like) for like in digests] == list(digests)
    path.write_bytes(b"abcd")
    now = store.stat(str(path))
    assert now is not None
    assert not {seen.digest(now, like) for like in digests} & {*digests, ""}

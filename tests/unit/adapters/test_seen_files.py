"""The memory of files of a local disk."""

from pathlib import Path

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.adapters.local.store import LocalStore

BLAKE3_OF_ABC = "b3-6437b3ac38465133ffb63b75273a8db5"


def test_digests_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"abc")
    store, memory = LocalStore(), str(tmp_path / "seen.sqlite")
    info = store.stat(str(path))
    assert info is not None
    seen = LocalSeenFiles(store, memory)
    assert seen.digest(info) == BLAKE3_OF_ABC
    seen.remember([info])
    path.unlink()
    assert LocalSeenFiles(store, memory).digest(info) == BLAKE3_OF_ABC
    path.write_bytes(b"abcd")
    now = store.stat(str(path))
    assert now is not None
    assert seen.digest(now) not in {BLAKE3_OF_ABC, ""}

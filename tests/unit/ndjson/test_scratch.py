"""Scratch folders are held from their beginning, whatever an erasure deletes meanwhile."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from compactor.core.errors import StoreUnavailable
from compactor.ndjson.files import scratch


def test_a_folder_that_was_deleted_before_it_was_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that an erasure takes for a leftover is not used: there is another one."""
    monkeypatch.setattr(scratch, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    hold, deleted = scratch.hold, list[str]()

    def erased_first(handle: int) -> bool:
        if not deleted:
            deleted.extend(path.name for path in tmp_path.iterdir())
            assert list(scratch.remove_scratch_folders()) == []
        return hold(handle)

    monkeypatch.setattr(scratch, "hold", erased_first)
    with scratch.scratch_folder() as folder:
        (folder / "kept").touch()
        assert list(scratch.remove_scratch_folders()) == []
        assert (folder / "kept").exists()
        assert folder.name not in deleted
    assert list(tmp_path.iterdir()) == []


def refused(*_: object, **__: object) -> int:
    """Open no file, as in a container whose root is read-only."""
    raise OSError(errno.EROFS, "Read-only file system")


def test_without_a_writable_place_the_attempt_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container without any is a fault of the machine, so no manifest becomes a dead letter for it."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "open", refused)
    with (
        pytest.raises(StoreUnavailable, match="No usable temporary directory"),
        scratch.scratch_errors(),
        scratch.scratch_folder(),
    ):
        pass

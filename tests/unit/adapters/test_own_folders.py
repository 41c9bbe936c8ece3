"""Promises of the check whether others could exchange a local file while it is opened by name."""

import os
from pathlib import Path

import pytest

from compactor.adapters.local.links import OwnFolders


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw" / "a" / "b").mkdir(parents=True)
    for folder in (tmp_path / "raw", tmp_path / "raw" / "a", tmp_path / "raw" / "a" / "b"):
        folder.chmod(0o755)
        (folder / "file").write_bytes(b"x")
    return tmp_path / "raw"


def held(raw: Path) -> list[str]:
    own = OwnFolders([str(raw)])
    return [name for name in ("file", "a/file", "a/b/file") if own.hold(f"{raw}/{name}")]


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_folders_that_others_may_write(raw: Path, mode: int) -> None:
    """Whatever lies below one of them, however deep, could be exchanged."""
    assert held(raw) == ["file", "a/file", "a/b/file"]
    (raw / "a").chmod(mode)
    assert held(raw) == ["file"]
    raw.chmod(mode)
    assert held(raw) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_folders_of_others(raw: Path) -> None:
    """Their owner may write them at any time."""
    os.chown(raw / "a" / "b", 12_345, 0)
    assert held(raw) == ["file", "a/file"]


def test_links(raw: Path) -> None:
    """A link to a file, or to a folder on the way, may lead into a folder of others; the way to a root may."""
    (raw / "a" / "link").symlink_to(raw / "file")
    (raw / "folder").symlink_to(raw / "a")
    own = OwnFolders([str(raw)])
    assert not own.hold(f"{raw}/a/link")
    assert not own.hold(f"{raw}/folder/file")
    assert not own.hold(f"{raw}/gone")
    (raw.parent / "way").symlink_to(raw)
    assert OwnFolders([f"{raw.parent}/way/"]).hold(f"file://{raw.parent}/way/a/file")


@pytest.mark.parametrize("uri", ["s3://raw/a/file", "/elsewhere/file"])
def test_other_places(raw: Path, uri: str) -> None:
    """S3 has no links, and what is below no such root is not a file of others."""
    assert OwnFolders([str(raw)]).hold(uri)

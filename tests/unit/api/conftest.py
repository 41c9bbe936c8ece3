"""Folders for calls of the Python functions."""

from pathlib import Path

import pytest


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for input, beside which the current folder is; a call works on one manifest at a time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPACTOR_CONFIG", raising=False)
    monkeypatch.setattr("compactor.adapters.local.native.threads.os.sched_getaffinity", lambda _pid: {0}, raising=False)
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder

"""`compactor data expire`: what is removed on request."""

import os
import time
from pathlib import Path

from compactor.core.errors import ExitCode
from tests.support.workspace import make_workspace


def test_expire(tmp_path: Path) -> None:
    """A date that is open, and one that is closed; then a deletion that was not finished."""
    workspace = make_workspace(tmp_path)
    workspace.plan()
    workspace.compact()
    workspace.json("data", "close")
    refused, code = workspace.json("data", "expire", "--before", "2026-01-01", "--yes")
    assert (code, len(refused["refused"])) == (ExitCode.NEEDS_OPERATOR, 1)
    days_ago = time.time() - 49 * 3600
    for file in (workspace.root / "s").rglob("*.json"):
        os.utime(file, (days_ago, days_ago))
    workspace.json("data", "close")
    assert workspace.call("data", "expire", "--before", "2026-01-01").exit_code == ExitCode.WRONG_USAGE
    for option in ("--dry-run", "--yes"):
        workspace.json("data", "expire", "--before", "2026-01-01", option)
    assert list((workspace.root / "o").rglob("*.parquet")) == []
    assert workspace.json("data", "expire", "--before", "2026-01-01", "--yes")[1] == ExitCode.DONE

"""`compactor retire` and `compactor accept`: what is given up on request."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cli.commands import accept
from compactor.core.errors import ExitCode
from compactor.ops.redrive.giving_up import InputsGivenUp
from compactor.ops.redrive.redrivable import Refused
from tests.support.statuses import MISSING_FILE
from tests.support.workspace import make_workspace


def test_retire(tmp_path: Path) -> None:
    """A date that is open, and one that is closed; then a deletion that was not finished."""
    workspace = make_workspace(tmp_path)
    workspace.plan()
    workspace.compact()
    workspace.json("close")
    refused, code = workspace.json("retire", "--before", "2026-01-01", "--yes")
    assert (code, len(refused["refused"])) == (ExitCode.NEEDS_OPERATOR, 1)
    days_ago = time.time() - 49 * 3600
    for file in (workspace.root / "s").rglob("*.json"):
        os.utime(file, (days_ago, days_ago))
    workspace.json("close")
    assert workspace.call("retire", "--before", "2026-01-01").exit_code == ExitCode.WRONG_USAGE
    for option in ("--dry-run", "--yes"):
        workspace.json("retire", "--before", "2026-01-01", option)
    assert list((workspace.root / "o").rglob("*.parquet")) == []
    assert workspace.json("retire", "--before", "2026-01-01", "--yes")[1] == ExitCode.DONE


def test_accept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything to accept, and with a gap."""
    workspace = make_workspace(tmp_path)
    assert workspace.json("accept", "--why", "late")[1] == ExitCode.DONE
    lost = replace(MISSING_FILE, uri="kafka://main/events/0?from=0&to=2", detail="retention removed offsets 0 to 1")
    losses = InputsGivenUp((lost,), (Refused("m2", "", "its commit cannot be read"),))
    monkeypatch.setattr(accept, "find_lost", lambda *_, **__: losses)
    assert workspace.call("accept", "--why", "late").exit_code == ExitCode.WRONG_USAGE
    assert "2 offsets of 1 range" in workspace.call("accept", "--why", "late", "--dry-run", "m1").output
    for option in ("--dry-run", "--yes"):
        assert workspace.json("accept", "--why", "late", option)[1] == ExitCode.NEEDS_OPERATOR

"""`compactor dismiss`: files and ranges are given up by name, by manifest or by date."""

from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cli.commands import dismiss
from compactor.core.errors import ExitCode
from compactor.ops.redrive.giving_up import Dismissal
from compactor.ops.redrive.redrivable import Refused
from tests.support.statuses import MISSING_FILE
from tests.support.workspace import make_workspace

RANGE = "kafka://main/events/0?from=0&to=2"


def test_something_has_to_be_named(tmp_path: Path) -> None:
    """A call without a file, a range, a manifest or a date would give up all that is quarantined."""
    workspace = make_workspace(tmp_path)
    refused = workspace.call("dismiss", "--why", "late", "--yes")
    assert (refused.exit_code, "expected FILE, RANGE, --manifest or --date" in refused.stderr) == (
        ExitCode.WRONG_USAGE,
        True,
    )
    assert workspace.json("dismiss", "--why", "late", "--date", "2026-01-02")[1] == ExitCode.DONE


def test_files_and_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option means the same for both; what was not named is given up after a prompt."""
    workspace = make_workspace(tmp_path)
    lost = replace(MISSING_FILE, uri=RANGE, detail="retention removed offsets 0 to 1")
    found = Dismissal((MISSING_FILE, lost), refused=(Refused("m2", "", "its commit cannot be read"),))
    monkeypatch.setattr(dismiss, "find_unsettled", lambda *_, **__: found)
    chosen = ("dismiss", "--why", "late", "--manifest", "m1")
    unasked = workspace.call(*chosen)
    assert unasked.exit_code == ExitCode.WRONG_USAGE
    assert "1 quarantined file and 2 offsets of 1 range" in unasked.stderr
    shown = workspace.call(*chosen, "--dry-run").output
    assert "Would give up 1 quarantined file and 2 offsets of 1 range" in shown
    assert "m2: its commit cannot be read" in shown
    for options in ((*chosen, "--dry-run"), (*chosen, "--yes"), ("dismiss", RANGE, "--why", "late")):
        assert workspace.json(*options)[1] == ExitCode.NEEDS_OPERATOR

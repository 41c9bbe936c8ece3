"""For unit tests of more than one folder."""

import pytest

from compactor.job import table_commits
from tests.support.harness import GOOD, Harness


@pytest.fixture
def harness() -> Harness:
    """One manifest, m1, that is done. A module that needs another beginning has a fixture of its own."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    return harness


@pytest.fixture
def short_commit_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a job wait for a moment only before it tries a commit to its table again."""
    monkeypatch.setattr(table_commits, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(table_commits, "LONGEST_PAUSE_SECONDS", 0.01)

"""For unit tests of more than one folder."""

import pytest

from compactor.job import table_commits


@pytest.fixture
def short_commit_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a job wait for a moment only before it tries a commit to its table again."""
    monkeypatch.setattr(table_commits, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(table_commits, "LONGEST_PAUSE_SECONDS", 0.01)

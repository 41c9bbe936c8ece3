"""Texts that tests compare with stored ones, and how to write a stored one anew."""

import os
from pathlib import Path

import pytest

UPDATE = "UPDATE_STORED"
"""Set this variable to 1 to have tests write what they found in place of what is stored."""


def refuse_updates_in_ci() -> None:
    """See that no test overwrites what it is to be compared with where nobody would look at the difference.

    Raises:
        pytest.UsageError: Both `CI` and `UPDATE_STORED` are set.
    """
    if os.environ.get("CI") and os.environ.get(UPDATE):
        raise pytest.UsageError(f"{UPDATE} is refused in CI: tests would pass whatever they find")


def check_stored(path: Path, found: str, advice: str = "") -> None:
    """Compare a text with the stored one.

    Args:
        path: Where it is stored.
        found: The text.
        advice: What else has to be done where the change is wanted.
    """
    if os.environ.get(UPDATE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    stored = path.read_text() if path.exists() else ""
    how = f"if the change is wanted, run this test with {UPDATE}=1 and look at the difference{advice}"
    assert found == stored, f"{path} says something else: {how}"

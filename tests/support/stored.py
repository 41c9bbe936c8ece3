"""Texts that tests compare with stored ones, and how a stored one is written anew."""

import os
from pathlib import Path

UPDATE = "UPDATE_STORED"
"""Set this variable to 1 to have tests write what they found in place of what is stored."""


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

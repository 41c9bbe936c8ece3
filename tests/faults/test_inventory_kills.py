"""A back-fill whose processes are killed at one crash point after the other: no object twice."""

from pathlib import Path

import pytest

from tests.support.inventory_process import make_inventory, planned_in, planned_numbers

OBJECTS = 40
"""Each of a day of its own, so that there are so many manifests, with two crash points each."""


@pytest.mark.faults
@pytest.mark.parametrize("source", ["inventory", "listing"])
def test_kills_and_resumptions(tmp_path: Path, source: str) -> None:
    """Processes that are killed right after a claim, or a manifest, leave the rest to the next, which ends it."""
    place = make_inventory(tmp_path, OBJECTS, 1) if source == "inventory" else str(OBJECTS)
    for die_after in (1, 2, 3, 4, 9, 16, 17):
        planned_in(tmp_path / "w", place, die_after=die_after)
        numbers = list(planned_numbers(tmp_path / "w"))
        assert len(set(numbers)) == len(numbers)
    last = planned_in(tmp_path / "w", place)
    assert last["held"] == 0
    assert list(planned_numbers(tmp_path / "w")) == list(range(OBJECTS))
    assert planned_in(tmp_path / "w", place)["planned_before"] == OBJECTS

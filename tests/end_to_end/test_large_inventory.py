"""Millions of objects planned from an inventory: in bounded memory, and after a kill each once."""

import json
from pathlib import Path

import pytest

from tests.support.inventory_process import make_inventory, planned_in, planned_numbers

OBJECTS = 5_000_000
DIE_AFTER = 12_000  # about a third of the crash points
PEAK_MB = 600


@pytest.mark.large
@pytest.mark.timeout(7200)
def test_five_million_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process is killed on the way; the next one plans the rest in as much memory as a small inventory takes."""
    manifest = make_inventory(tmp_path, OBJECTS, 10)
    planned_in(tmp_path / "w", manifest, die_after=DIE_AFTER)
    before = len(planned_numbers(tmp_path / "w"))
    figures = planned_in(tmp_path / "w", manifest)
    with capsys.disabled():
        print(json.dumps({"objects": OBJECTS, "planned_by_the_killed": before, **figures}))  # noqa: T201 - to be seen
    assert figures["peak_mb"] < PEAK_MB
    assert (figures["files"] + figures["planned_before"], figures["held"]) == (OBJECTS, 0)
    numbers = planned_numbers(tmp_path / "w")
    assert len(numbers) == OBJECTS
    assert all(number == at for at, number in enumerate(numbers))

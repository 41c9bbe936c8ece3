"""Millions of objects planned from an inventory or a listing: in bounded memory, and after a kill each once."""

import json
from pathlib import Path

import pytest

from tests.support.inventory_process import make_inventory, planned_in, planned_numbers

OBJECTS = 5_000_000
DIE_AFTER = 12_000  # about a third of the crash points
PEAK_MB = 600
FEW, MANY = 100_000, 1_000_000
MOST_BYTES_AN_OBJECT = 50
"""By which memory may grow: for the figures of the manifests. Kept as an object of Python, each would take 1 kB."""


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


@pytest.mark.large
@pytest.mark.timeout(7200)
def test_a_long_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten times as many objects, of days in any order, take as much memory; a killed process leaves the rest."""
    found = [planned_in(tmp_path / "few", str(FEW))]
    planned_in(tmp_path / "many", str(MANY), die_after=MANY // 500)
    before = len(planned_numbers(tmp_path / "many"))
    found.append(planned_in(tmp_path / "many", str(MANY)))
    few, many = found
    with capsys.disabled():
        print(json.dumps({"planned_by_the_killed": before, "few": few, "many": many}))  # noqa: T201 - to be seen
    assert (many["peak_mb"] - few["peak_mb"]) * 2**20 < MOST_BYTES_AN_OBJECT * (MANY - FEW)
    assert 0 < before < MANY
    assert (many["files"] + many["planned_before"], many["held"]) == (MANY, 0)
    numbers = planned_numbers(tmp_path / "many")
    assert len(numbers) == MANY
    assert all(number == at for at, number in enumerate(numbers))

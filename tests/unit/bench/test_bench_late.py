"""The benchmark of late events: what it generates is as late as it says, and it runs from end to end."""

import json
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.late import __main__ as late
from bench.late.events import Lateness, lines
from tests.support import extras

DAY = date(2025, 11, 1)


def test_events() -> None:
    """A fifth is late, by up to thirty days, and the first key is the most frequent; a seed makes them again."""
    made = [json.loads(line) for line in lines(DAY, 5000, Lateness(), "a")]
    behind = [(DAY - date.fromisoformat(each["ts"][:10])).days for each in made]
    assert (min(behind), max(behind)) == (0, 30)
    assert 0.15 < sum(map(bool, behind)) / len(made) < 0.25
    assert behind.count(1) > behind.count(2) > behind.count(30)
    keys = [each["user"] for each in made]
    assert max(set(keys), key=keys.count) == "u0001"
    assert list(lines(DAY, 10, Lateness(), "a")) == list(lines(DAY, 10, Lateness(), "a"))


@extras.NATIVE.needed
@pytest.mark.large
@pytest.mark.timeout(600)
def test_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All answers are the same after merging, from fewer files."""
    monkeypatch.setattr(late, "_WORK", tmp_path)
    result = CliRunner().invoke(late.main, ["--days", "1", "--manifests", "3", "--rows", "5000"])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "late.json").read_text())
    assert (found["answers_are_equal"], found["verified"]) == (True, True)
    assert found["after"]["files"] < found["before"]["files"]
    assert found["after"]["hit_rate"] == 1

"""With upkeep, neither the metadata of a table nor the time of a commit grows with the number of its commits."""

from pathlib import Path

import pytest

from bench.upkeep.__main__ import HEADINGS, cells
from bench.upkeep.carried import carried
from bench.upkeep.commits import Figures, Upkeep, measured


def figures(folder: Path, *at: int, upkeep: Upkeep | None) -> list[Figures]:
    return list(measured(folder, at[-1], frozenset(at), upkeep))


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / "with", tmp_path / "without"]
    for each in made:
        each.mkdir()
    return made


def test_a_few_commits(folders: list[Path]) -> None:
    """They grow without upkeep, and with it the snapshots stay as many as are kept."""
    early, late = figures(folders[0], 5, 15, upkeep=Upkeep(every=5, keep=5))
    assert (early.snapshots, late.snapshots) == (5, 5)
    alone = figures(folders[1], 15, upkeep=None)[-1]
    assert alone.snapshots == 15
    assert alone.metadata_bytes - late.metadata_bytes > 10 * 500  # of ten snapshots
    assert late.upkeep_seconds > alone.upkeep_seconds == 0
    assert alone.cpu_seconds < alone.most_cpu_seconds
    assert alone.most_cpu_seconds / 15 < alone.mean_cpu_seconds < alone.most_cpu_seconds
    assert dict(zip(HEADINGS, cells(alone), strict=True))["most"] == f"{alone.most_cpu_seconds * 1000:.0f}"


def test_what_is_carried(tmp_path: Path) -> None:
    """Each manifest is committed once and done, in as few commits as they fit into."""
    found = carried(tmp_path, 7, at_once=3)
    assert (found.manifests, found.commits) == (7, 3)
    assert len(list((tmp_path / "state").rglob("done.json"))) == 7


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_many_commits(folders: list[Path]) -> None:
    """From the thousandth to the three thousandth commit, nothing that a commit reads or writes grows by much."""
    early, late = figures(folders[0], 1000, 3000, upkeep=Upkeep(every=100, keep=100))
    assert late.metadata_bytes < 1.05 * early.metadata_bytes
    assert late.files <= early.files + 10
    assert late.cpu_seconds < 1.5 * early.cpu_seconds

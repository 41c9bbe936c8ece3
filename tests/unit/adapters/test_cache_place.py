"""Each state has one file for what is remembered of local files."""

from pathlib import Path

import pytest

from compactor.adapters.local.sqlite.seen_files import seen_file
from compactor.core.layout import Layout
from tests.support.harness import Harness

HOME = {"HOME": "/home/me"}


def layout(root: str) -> Layout:
    return Harness(root=root).layout


def test_beside_a_local_state() -> None:
    """All who call share it."""
    assert seen_file(layout("/w"), HOME) == layout("/w").seen_file


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        (HOME, "/home/me/.cache/compactor"),
        ({**HOME, "XDG_CACHE_HOME": "/caches"}, "/caches/compactor"),
        ({**HOME, "XDG_CACHE_HOME": "caches"}, "/home/me/.cache/compactor"),
        ({**HOME, "XDG_CACHE_HOME": ""}, "/home/me/.cache/compactor"),
    ],
)
def test_in_the_folder_for_caches(environment: dict[str, str], folder: str) -> None:
    """A relative folder is ignored, as the specification asks."""
    assert str(Path(seen_file(layout("s3://bucket/w"), environment)).parent) == folder


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "somewhere"}])
def test_nowhere(environment: dict[str, str]) -> None:
    """Without such a folder nothing is remembered."""
    assert seen_file(layout("s3://bucket/w"), environment) == ""


def test_each_state_has_its_own() -> None:
    """What one state knows says nothing of another."""
    files = [seen_file(layout(root), HOME) for root in ("s3://bucket/w", "s3://bucket/v", "s3://other/w")]
    assert len(set(files)) == len(files)
    assert files[0] == seen_file(layout("s3://bucket/w"), HOME)

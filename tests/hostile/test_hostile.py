"""Attacks of a hostile producer: each ends as expected, and five honest manifests beside it are committed exactly."""

from pathlib import Path
from typing import Any

import pytest

from tests.hostile.attack import Attack
from tests.hostile.catalogue import ATTACKS
from tests.hostile.scene import Scene
from tests.support.extras import NATIVE


def _cases() -> list[Any]:
    marked = [(attack, () if attack.quick else pytest.mark.full) for attack in ATTACKS if "native" in attack.engines]
    return [pytest.param(attack, marks=marks, id=attack.name) for attack, marks in marked]


@NATIVE.needed
@pytest.mark.parametrize("attack", _cases())
def test_on_the_native_engine(attack: Attack, tmp_path: Path) -> None:
    """The attack is delivered before the honest manifests."""
    scene = Scene(tmp_path / "place", "native", attack)
    scene.let_attack_in()
    scene.let_neighbours_in()
    scene.run()
    assert scene.faults() == []

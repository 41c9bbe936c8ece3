"""Attacks of a hostile producer: each ends as expected, and five honest manifests beside it are committed exactly."""

from pathlib import Path

import pytest

from tests.hostile.attack import Attack
from tests.hostile.catalogue import ATTACKS
from tests.hostile.scene import Scene
from tests.support.extras import NATIVE

QUICK = [attack for attack in ATTACKS if attack.quick and "native" in attack.engines]
"""One of each kind; `make test-hostile` measures all of them on both engines, and checks the same."""


@NATIVE.needed
@pytest.mark.parametrize("attack", QUICK, ids=[attack.name for attack in QUICK])
def test_on_the_native_engine(attack: Attack, tmp_path: Path) -> None:
    """The attack is delivered before the honest manifests."""
    scene = Scene(tmp_path / "place", "native", attack)
    scene.let_attack_in()
    scene.let_neighbours_in()
    scene.run()
    assert scene.faults() == []

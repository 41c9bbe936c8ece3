"""The attacks of a hostile producer on the Spark engine; `tests/hostile` has them, and tries the native one."""

from pathlib import Path
from typing import Any

import pytest

from tests.hostile.attack import Attack
from tests.hostile.catalogue import ATTACKS
from tests.hostile.scene import Scene

CASES = [pytest.param(attack, id=attack.name) for attack in ATTACKS if "spark" in attack.engines]


@pytest.mark.full
@pytest.mark.parametrize("attack", CASES)
def test_on_spark(attack: Attack, spark: Any, tmp_path: Path) -> None:  # noqa: ARG001 - Spark is up first
    """Each ends as on the native engine, and the honest manifests beside it are committed exactly."""
    scene = Scene(tmp_path / "place", "spark", attack)
    scene.let_attack_in()
    scene.let_neighbours_in()
    scene.run()
    assert scene.faults() == []

"""What is remembered of explored configurations."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.protocol.configurations import SMALL, Configuration
from tests.protocol.held import HeldConfigurations, fingerprint
from tests.protocol.tlc import Exploration


def test_what_holds_is_explored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states and seconds are kept; what is violated is kept by none, and explored again."""
    asked = list[str]()

    def explored(configuration: Configuration) -> Exploration:
        asked.append(configuration.module)
        return Exploration("AnEffectOnce" if configuration.module == "Sealing" else "", 7, 1.25, "printed")

    monkeypatch.setattr(Configuration, "explored", explored)
    claims, sealing = (next(each for each in SMALL if each.module == module) for module in ("Claims", "Sealing"))
    file = tmp_path / "held.json"
    assert HeldConfigurations(file).explored(claims) == (Exploration("", 7, 1.25, "printed"), False)
    assert HeldConfigurations(file).explored(claims) == (Exploration("", 7, 1.2, ""), True)
    for _ in range(2):
        found, was_earlier = HeldConfigurations(file).explored(sealing)
        assert (found.violated, was_earlier) == ("AnEffectOnce", False)
    assert HeldConfigurations(file).explored(replace(claims, is_live=True))[1] is False
    assert asked == ["Claims", "Sealing", "Sealing", "Claims"]


def test_whatever_an_answer_depends_on_makes_it_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module, its text, constants, symmetry, properties and guards; the name alone does not."""
    one = next(each for each in SMALL if each.module == "Sealing")
    assert fingerprint(replace(one, name="of another name")) == fingerprint(one)
    others = [
        replace(one, module="Claims"),
        replace(one, values={**one.values, "MaxIds": "4"}),
        replace(one, alike=()),
        replace(one, is_live=True),
        one.lacking("bind before the parts are deleted"),
    ]
    assert len({fingerprint(each) for each in [one, *others]}) == 1 + len(others)
    before = fingerprint(one)
    (tmp_path / "Sealing.tla").write_text("---- MODULE Sealing ----")
    monkeypatch.setattr("tests.protocol.held.SPEC", tmp_path)
    assert fingerprint(one) != before

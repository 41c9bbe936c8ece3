"""What is remembered of explored configurations."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.protocol.configurations import SMALL, Configuration
from tests.protocol.held import HeldConfigurations, fingerprint
from tests.protocol.tlc import Exploration

CLAIMS, TABLE = (next(each for each in SMALL if each.module == module) for module in ("Claims", "Table"))


def test_what_holds_is_explored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its states are kept; what is violated is kept by none, and explored again."""
    asked = list[str]()

    def explored(configuration: Configuration) -> Exploration:
        asked.append(configuration.module)
        return Exploration("AnEffectOnce" if configuration.module == "Table" else "", 7, 1.25, "printed")

    monkeypatch.setattr(Configuration, "explored", explored)
    file = tmp_path / "held.json"
    assert HeldConfigurations(file).explored(CLAIMS) == (Exploration("", 7, 1.25, "printed"), False)
    assert HeldConfigurations(file).explored(CLAIMS) == (Exploration("", 7, 0.0, ""), True)
    for _ in range(2):
        found, was_earlier = HeldConfigurations(file).explored(TABLE)
        assert (found.violated, was_earlier) == ("AnEffectOnce", False)
    assert HeldConfigurations(file).explored(replace(CLAIMS, is_live=True))[1] is False
    assert asked == ["Claims", "Table", "Table", "Claims"]


def test_what_is_explored_again_changes_only_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same states leave the file as it is, whatever they took; what is violated now holds no longer."""
    answers = [("", 7, 1.0), ("", 7, 2.0), ("", 8, 3.0), ("AnEffectOnce", 2, 1.0)]
    monkeypatch.setattr(Configuration, "explored", lambda _: Exploration(*answers.pop(0), printed=""))
    file, texts = tmp_path / "held.json", list[str]()
    while answers:
        assert HeldConfigurations(file, is_again=True).explored(CLAIMS)[1] is False
        texts.append(file.read_text())
    assert texts[0] == texts[1]
    assert [[held["states"] for held in json.loads(text).values()] for text in texts[1:]] == [[7], [8], []]


def test_others_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module was before needs no line in the repository."""
    monkeypatch.setattr(Configuration, "explored", lambda _: Exploration("", 7, 1.0, ""))
    held = HeldConfigurations(tmp_path / "held.json")
    for each in (CLAIMS, TABLE):
        held.explored(each)
    held.keep_only([TABLE])
    assert [held.explored(each)[1] for each in (CLAIMS, TABLE)] == [False, True]


def test_whatever_an_answer_depends_on_makes_it_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module, its text, constants, symmetry, properties and guards; the name alone does not."""
    one = TABLE
    assert fingerprint(replace(one, name="of another name")) == fingerprint(one)
    others = [
        replace(one, module="Claims"),
        replace(one, values={**one.values, "MaxStops": "4"}),
        replace(one, alike=()),
        replace(one, is_live=True),
        one.lacking("no blind retry"),
    ]
    assert len({fingerprint(each) for each in [one, *others]}) == 1 + len(others)
    before = fingerprint(one)
    (tmp_path / "Table.tla").write_text("---- MODULE Table ----")
    monkeypatch.setattr("tests.protocol.held.SPEC", tmp_path)
    assert fingerprint(one) != before

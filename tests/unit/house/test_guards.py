"""The guards are about the code of today; `make test-guards` takes each out of it."""

import ast
import builtins
import re
from pathlib import Path

from tests.guards import GUARDS, marks, without
from tests.simulation.found import SEEDS
from tests.support.housekeeping import trees

ROOT = Path(__file__).resolve().parents[3]
MARKS = marks(ROOT / "compactor")


def test_each_mark_is_that_of_one_guard() -> None:
    """Otherwise `make test-guards` would take out nothing, or something else as well."""
    assert sorted(name for name, paths in MARKS.items() for _ in paths) == sorted(guard.name for guard in GUARDS)
    assert SEEDS.keys() <= MARKS.keys()


def test_each_guard_can_be_taken_out_of_what_stands_at_its_mark() -> None:
    for guard in GUARDS:
        [path] = MARKS[guard.name]
        compile(without(path.read_text(), guard), str(path), "exec")


def test_what_takes_the_place_of_a_guard_names_what_there_is() -> None:
    """Else the code fails for a name, and any test would notice."""
    known = {name for tree in trees("compactor").values() for node in ast.walk(tree) for name in _names(node)}
    for guard in GUARDS:
        if re.fullmatch(r"-\w+", guard.without) is None:
            named = {name for node in ast.walk(ast.parse(guard.without)) for name in _names(node)}
            assert {name for name in named - known if not hasattr(builtins, name) and name[:2] != "__"} == set(), guard


def _names(node: ast.AST) -> set[str]:
    fields = (getattr(node, each, None) for each in ("id", "attr", "arg", "name"))
    return {each for each in fields if isinstance(each, str)}


def test_the_tests_of_each_guard_are_there() -> None:
    assert {path for guard in GUARDS for path in guard.tests if not (ROOT / path).exists()} == set()

"""The model and the code name each other: no action without code, no crash point without an action."""

import ast
import re
import tomllib
from functools import cache

import pytest

from compactor.core.crash_points import ChangeCrashPoint, CrashPoint, PlanCrashPoint, RedriveCrashPoint
from tests.protocol.configurations import SAFETY
from tests.protocol.tlc import ROOT, SPEC

ACTIONS = tomllib.loads((SPEC / "actions.toml").read_text())
KINDS = (CrashPoint, PlanCrashPoint, RedriveCrashPoint, ChangeCrashPoint)
POINTS = {f"{kind.__name__}.{each.name}" for kind in KINDS for each in kind}


def actions_of(module: str) -> set[str]:
    """The actions that the next-state relation of a module has."""
    text = (SPEC / f"{module}.tla").read_text()
    relation = "".join(re.findall(r"^(?:Next|Progress\w*\(\w\)) ==\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE))
    return set(re.findall(r"(?<!\\in )\b(?!Progress)[A-Z]\w+", relation))


@cache
def functions_of(module: str) -> frozenset[str]:
    """The functions and methods of a module of the package."""
    tree = ast.parse((ROOT / "compactor" / module).read_text())
    methods = (
        f"{each.name}.{one.name}"
        for each in tree.body
        if isinstance(each, ast.ClassDef)
        for one in each.body
        if isinstance(one, ast.FunctionDef)
    )
    return frozenset([*methods, *(each.name for each in tree.body if isinstance(each, ast.FunctionDef))])


@pytest.mark.parametrize("module", SAFETY)
def test_each_action_has_code(module: str) -> None:
    assert actions_of(module) == ACTIONS[module].keys()
    for name, action in ACTIONS[module].items():
        assert action.get("code") or action.get("outside"), name
        for place in action.get("code", ()):
            path, _, function = place.partition(":")
            assert function in functions_of(path), f"{module}.{name}: {place}"


def test_each_crash_point_has_an_action() -> None:
    named = {point for module in ACTIONS.values() for action in module.values() for point in action.get("after", ())}
    assert named == POINTS

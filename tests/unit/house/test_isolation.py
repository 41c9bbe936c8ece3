"""A test replaces a name where its own module looks it up, never for the whole process.

Other threads sleep, too: once a test has started Spark, py4j keeps one that sleeps a second at a time. A test that
replaces `time.sleep` itself makes such a thread spin, and counts its pauses as those of the code it looks at.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.support.housekeeping import ROOT, trees


def replaced_for_all(tree: ast.AST) -> Iterator[int]:
    """The lines of calls of `setattr` that replace an attribute of the module `time` itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            target = node.args[0]
            if isinstance(target, ast.Constant):
                words = str(target.value).split(".")[:-1]
            else:
                words = ast.unparse(target).split(".")
            if words[-1:] == ["time"]:
                yield node.lineno


def test_no_test_replaces_the_time_of_all_threads() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}" for path, tree in trees("tests").items() for line in replaced_for_all(tree)
    ]
    assert found == [], 'replace the name `time` of the module under test: setattr("a.module.time", SimpleNamespace(…))'


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('monkeypatch.setattr("compactor.x.time.sleep", f)', True),
        ('monkeypatch.setattr("time.sleep", f)', True),
        ('monkeypatch.setattr(module.time, "sleep", f)', True),
        ('monkeypatch.setattr(time, "sleep", f)', True),
        ('monkeypatch.setattr("compactor.x.time", f)', False),
        ('monkeypatch.setattr(module, "time", f)', False),
    ],
)
def test_what_counts(text: str, is_found: bool) -> None:
    assert bool([*replaced_for_all(ast.parse(text))]) is is_found

"""What a part of a release runs or reads is known."""

import ast
from functools import cache
from pathlib import Path

from tests.release import INPUTS
from tests.support.housekeeping import ROOT


def test_the_files_of_a_part_are_all_that_it_imports() -> None:
    """A part that passed is not run again while these are the same: none may be missing. The product imports itself."""
    for name, inputs in INPUTS.items():
        places = [ROOT / path for path in inputs]
        assert all(place.exists() for place in places), name
        for found in [file for place in places if place.name != "compactor" for file in modules_below(place)]:
            for imported in imports_of(found):
                assert any(place in (imported, *imported.parents) for place in places), (name, found, imported)


def modules_below(path: Path) -> list[Path]:
    """The Python files of a file or folder."""
    return [path] if path.suffix == ".py" else [*path.rglob("*.py")]


@cache
def imports_of(module: Path) -> set[Path]:
    """The files of this tree that a module imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(module.read_bytes())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    stems = [ROOT.joinpath(*name.split(".")) for name in names]
    places = {*(stem.with_suffix(".py") for stem in stems), *(stem / "__init__.py" for stem in stems)}
    return {place for place in places if place.exists() and place.read_bytes().strip()}

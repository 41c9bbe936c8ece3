"""A module is worth its own name, imports stay few, and private parts of libraries are debt that is explained."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.support.housekeeping import ROOT, trees

WHOLE_LINES = 150  # from so many on, a module may stand beside its only importer
MOST_PRIVATE = 12
MOST_IMPORTS = 0.1
COMMANDS = {"compactor/cli/commands", "compactor/cli/documents"}
"""Folders in which a module is found by the name of its command."""


def test_no_module_is_a_fragment_of_its_only_importer() -> None:
    """One that a single module of its folder imports holds a port, a command, a program or over 150 lines."""
    names = {_name(path): path for path in trees("compactor")}
    importers: dict[Path, set[Path]] = defaultdict(set)
    for path, tree in trees("compactor").items():
        for name in _imported(tree):
            found = names.get(name) or names.get(name.rpartition(".")[0])
            if found is not None and found != path:
                importers[found].add(path)
    fragments = {
        path.relative_to(ROOT).as_posix()
        for path, by in importers.items()
        if [each.parent for each in by] == [path.parent] and not _stands_alone(path)
    }
    assert fragments == set()


def test_imports_are_few() -> None:
    """Of the lines that are not blank, less than a tenth are imports: more say that the code is in too many pieces."""
    lines = imports = 0
    for path, tree in trees("compactor").items():
        lines += sum(bool(line.strip()) for line in path.read_text().splitlines())
        imports += sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
    assert imports < MOST_IMPORTS * lines


def test_private_parts_of_libraries_are_few_and_explained() -> None:
    """The line above says what breaks when a library changes such a part, and how it is noticed."""
    found, unexplained = 0, []
    for path in trees("compactor"):
        above = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "noqa: SLF001" in line:
                found += 1
                unexplained += [] if "#" in above else [f"{path.relative_to(ROOT)}:{number}"]
            else:
                above = line
    assert found <= MOST_PRIVATE
    assert unexplained == []


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def _stands_alone(path: Path) -> bool:
    text, tree = path.read_text(), trees("compactor")[path]
    has_port = any(
        isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
        for node in tree.body
    )
    is_command = path.parent.relative_to(ROOT).as_posix() in COMMANDS
    is_program = "__name__ ==" in text or path.stem in {"__init__", "__main__"}
    return has_port or is_command or is_program or len(text.splitlines()) > WHOLE_LINES

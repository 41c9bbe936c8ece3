"""Which modules of this code an entry imports, also late, and which packages of others."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN = ("compactor", "lambdas")


def imported_files(entries: Iterable[Path], root: Path = ROOT) -> tuple[list[Path], dict[str, Path]]:
    """Follow the imports of some files.

    Args:
        entries: Files that somebody starts.
        root: The folder that the packages are in.

    Returns:
        The files that are needed, entries and packages included; and the packages of others, each with a file that
        imports it.
    """
    waiting = list(entries)
    needed: set[Path] = set()
    others: dict[str, Path] = {}
    while waiting:
        path = waiting.pop()
        if path in needed:
            continue
        needed.add(path)
        for name in _imports(path):
            package = name.partition(".")[0]
            if package in OWN:
                waiting += _files_of(name, root)
            elif package not in sys.stdlib_module_names:
                others.setdefault(package, path)
    return sorted(needed), others


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(name: str, root: Path) -> Iterator[Path]:
    """The file of a module, and of each package that it is in."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        plain = root.joinpath(*parts[:length])
        yield from (path for path in (plain.with_suffix(".py"), plain / "__init__.py") if path.is_file())

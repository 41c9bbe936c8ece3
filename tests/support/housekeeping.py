"""What the sources define, use, import and read, by their syntax trees: by names alone, so that it is quick."""

import ast
import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("compactor", "tools", "deploy", "bench", "lambdas", "glue_entry.py")

_BY_DECORATOR = {"field_validator", "model_validator", "field_serializer", "model_serializer"}
"""Decorators that have what they decorate called."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definition:
    """Something with a name.

    Attributes:
        place: Module and line.
        own_uses: How often its own body uses the name, which keeps nothing alive.
        text: Of a text with a name, which a member of an enumeration is made from; else empty.
    """

    name: str
    place: str
    own_uses: int
    text: str = ""


def module_constants(package: ModuleType) -> Iterator[tuple[str, object]]:
    """What the modules of a package have by name, such as `compactor.core.layout._DATE`.

    Modules of extras that are not installed are passed over, and so are programs.
    """
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("__main__"):
            continue
        try:
            found = vars(importlib.import_module(module.name))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("compactor."):
                raise
            continue
        yield from ((f"{module.name}.{name}", value) for name, value in found.items())


def trees(*places: str) -> Mapping[Path, ast.Module]:
    """The modules below some folders of the house, parsed."""
    paths = [path for place in places for path in (sorted((ROOT / place).rglob("*.py")) or [ROOT / place])]
    return {path: _parsed(path) for path in paths}


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def uses(tree: ast.AST) -> Counter[str]:
    """How often each name is used: read, called, taken of something, or written as a text. No import is a use."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found[node.attr] += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found[node.value] += 1  # a type that is written as text, or a name for `getattr`
    return found


def renamed(tree: ast.Module) -> Counter[str]:
    """Names that are imported under another one, which is as good as a use."""
    return Counter(
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    )


def definitions(path: Path, tree: ast.Module) -> Iterator[Definition]:
    """The functions, classes, constants and methods of a module."""
    for node in tree.body:
        yield from _definition(path, node)
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, Function | ast.Assign):
                    yield from _definition(path, member)


def _definition(path: Path, node: ast.stmt) -> Iterator[Definition]:
    place = f"{path.relative_to(ROOT)}:{node.lineno}"
    if isinstance(node, Function | ast.ClassDef):
        if not {name for each in node.decorator_list for name in uses(each)} & _BY_DECORATOR:
            yield Definition(node.name, place, uses(node)[node.name])
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    yield Definition(each.id, place, 0, _text(node.value))


def _text(value: ast.expr | None) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def dead(modules: Mapping[Path, ast.Module]) -> dict[str, str]:
    """The place of each name that is defined in these modules, and used by none of them."""
    used: Counter[str] = Counter()
    for tree in modules.values():
        used += uses(tree) + renamed(tree)
    return {
        each.name: each.place
        for path, tree in modules.items()
        for each in definitions(path, tree)
        if not each.name.startswith("__") and used[each.name] <= each.own_uses and used[each.text] <= 1
    }


def imported(tree: ast.Module) -> set[str]:
    """The top-level packages that a module imports."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def texts(tree: ast.Module) -> set[str]:
    """The texts in a module, those of documentation not counted."""
    described = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None
        if isinstance(node.body[0], ast.Expr)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described
    }


def attributes(tree: ast.Module) -> set[tuple[str, str]]:
    """What is taken of what, as in `settings.stream.max_attempts`: both names, the owner's without underscores."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            found.add((name.strip("_"), node.attr))
    return found


def long_functions(path: Path, tree: ast.Module, most_lines: int) -> Iterator[str]:
    """The functions that are longer, their documentation and the marks of guards not counted."""
    code = path.read_text().splitlines()
    for node in ast.walk(tree):
        if isinstance(node, Function):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            lines = sum(not line.lstrip().startswith("# guard: ") for line in code[first.lineno - 1 : node.end_lineno])
            if lines > most_lines:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines"

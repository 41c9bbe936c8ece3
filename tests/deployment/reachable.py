"""Finds the functions that an entry point can reach. It compares names only, so it may find too many, never too few.

A function is reachable if reachable code mentions its name, a method if reachable code also mentions its class.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("compactor", "lambdas", "glue_entry")

NOT_ON_AWS = {
    "compactor.adapters.local.store": "all places are on S3",
    "compactor.adapters.local.sqlite.claims": "claims are in DynamoDB",
    "compactor.adapters.claims": "claims are in DynamoDB",
    "compactor.cli.entry": "the job runs no command",
    "compactor.adapters.aws.local_setup": "only a stand-in for AWS is set up by code",
}
"""Modules that never run on AWS, each with the reason. Their calls need no permission."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

_TELLING = (ast.Name, ast.Attribute, ast.Import, ast.ImportFrom)
"""What a mention is found in."""


@dataclass(frozen=True, slots=True)
class Found:
    """A function or method that an entry point can reach."""

    module: str
    class_name: str
    name: str
    node: Function = field(compare=False)


@dataclass(slots=True)
class _Mentions:
    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)


def reachable(entry: str) -> frozenset[Found]:
    """The functions that an entry point such as `lambdas.manifest_builder.handler` can reach."""
    module, _, function = entry.rpartition(".")
    mentions = _Mentions(names={function})
    _mention_module(module, mentions)
    found: set[Found] = set()
    while True:
        mentioned = mentions.names | mentions.attributes
        live = _live_classes(mentions.modules, mentioned)
        new = {
            each
            for name in mentions.modules
            for each in _functions(name)
            if _runs(each, mentions, mentioned, live) and each not in found
        }
        if not new:
            return frozenset(found)
        for each in new:
            _mention(each.module, _body(each.node), mentions)
        found |= new


def _runs(function: Found, mentions: _Mentions, mentioned: set[str], live: set[str]) -> bool:
    if not function.class_name:
        return function.name in mentioned
    is_special = function.name.startswith("__")
    return function.class_name in live and (is_special or function.name in mentions.attributes)


def _live_classes(modules: set[str], mentioned: set[str]) -> set[str]:
    """The classes that are mentioned, and their base classes."""
    bases = {name: parents for module in modules for name, parents in _classes(module).items()}
    live = {name for name in bases if name in mentioned}
    while more := {parent for name in live for parent in bases.get(name, ())} - live:
        live |= more
    return live


def _mention_module(name: str, mentions: _Mentions) -> None:
    """Add what runs when a module and its parent packages are imported."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        each = ".".join(parts[:length])
        if each in mentions.modules or each in NOT_ON_AWS or _path(each) is None:
            continue
        mentions.modules.add(each)
        _mention(each, _top_level(each), mentions)


def _mention(module: str, nodes: Iterable[ast.AST], mentions: _Mentions) -> None:
    for node in nodes:
        if isinstance(node, ast.Name):
            mentions.names.add(node.id)
        elif isinstance(node, ast.Attribute):
            mentions.attributes.add(node.attr)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                _mention_module(alias.name, mentions)
        elif isinstance(node, ast.ImportFrom):
            _mention_module(node.module or module, mentions)
            for alias in node.names:
                _mention_module(f"{node.module}.{alias.name}", mentions)


@cache
def _path(module: str) -> Path | None:
    if module.split(".", maxsplit=1)[0] not in PACKAGES:
        return None
    plain = ROOT.joinpath(*module.split("."))
    return next((path for path in (plain.with_suffix(".py"), plain / "__init__.py") if path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    assert path is not None, f"{module}: there is no such module"
    return ast.parse(path.read_text())


@cache
def _functions(module: str) -> tuple[Found, ...]:
    tree = _tree(module)
    methods = (
        Found(module, each.name, node.name, node)
        for each in tree.body
        if isinstance(each, ast.ClassDef)
        for node in each.body
        if isinstance(node, Function)
    )
    return (*(Found(module, "", node.name, node) for node in tree.body if isinstance(node, Function)), *methods)


@cache
def _classes(module: str) -> dict[str, tuple[str, ...]]:
    return {
        each.name: tuple(base.id for base in each.bases if isinstance(base, ast.Name))
        for each in _tree(module).body
        if isinstance(each, ast.ClassDef)
    }


@cache
def _top_level(module: str) -> tuple[ast.AST, ...]:
    """The code that runs on import: everything except function bodies, annotations and base classes."""
    statements = _tree(module).body
    parts = (part for each in statements for part in (each.body if isinstance(each, ast.ClassDef) else [each]))
    return _telling(part for part in parts if not isinstance(part, Function))


@cache
def _body(node: Function) -> tuple[ast.AST, ...]:
    return _telling((*node.body, *node.decorator_list))


def _telling(nodes: Iterable[ast.AST]) -> tuple[ast.AST, ...]:
    """What mentions something in some code without its annotations."""
    waiting, found = list(nodes), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, _TELLING):
            found.append(node)
        for name in node._fields:
            value = None if name in {"annotation", "returns"} else getattr(node, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
    return tuple(found)

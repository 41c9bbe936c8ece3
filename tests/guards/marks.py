"""Where guards stand in the code, and the code without one of them.

A guard is marked where it is: `# guard: NAME` behind its line, or on a line of its own above it. What stands there is
taken out by its syntax, so that no entry quotes code. A `without` that is

- `pass` takes a statement out, a keyword argument, or, of an `except`, what it catches;
- `-NAME` drops the keyword argument of that name, or the call of that function, for its argument; `-if` drops the
  conditions of a comprehension, and `-last` the last operand of `and` or `or`: of the first that stands there;
- statements take the place of the one at the mark, which goes on as `...` among them;
- any other expression takes the place of what is tested (`if`, `elif`, `while`), returned, assigned, gone through
  (`for`) or, amid a statement, of the expression that begins at the mark.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MARK = re.compile(r"(?P<code>.*?)\s*# guard: (?P<name>\S.*)")
Changed = ast.AST | list[ast.stmt] | None


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Attributes:
        name: What it keeps from happening, or makes sure of.
        without: How it is taken out of what stands at its mark.
        tests: Where at least one test must fail without it; empty if only the simulation is asked.
    """

    name: str
    without: str
    tests: tuple[str, ...]


def marks(package: Path) -> Mapping[str, Sequence[Path]]:
    """The files with each mark below a folder; one that has it twice is there twice."""
    found: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        for name, _ in _marks_of(path.read_text()):
            found.setdefault(name, []).append(path)
    return found


def without(code: str, guard: Guard) -> str:
    """The code of a module without a guard.

    Raises:
        ValueError: Its mark does not stand there once, or says nothing of what stands there.
    """
    lines = [line for name, line in _marks_of(code) if name == guard.name]
    if len(lines) != 1:
        raise ValueError(f"the mark of {guard.name!r} is there {len(lines)} times")
    tree = ast.parse(code)
    before = ast.dump(tree)
    _Without(lines[0], guard.without).visit(tree)
    if ast.dump(tree) == before:
        raise ValueError(f"nothing at the mark of {guard.name!r} is taken out by {guard.without!r}")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _marks_of(code: str) -> Iterator[tuple[str, int]]:
    if "# guard: " not in code:
        return
    lines = code.splitlines()
    for number, line in enumerate(lines):
        if (mark := _MARK.fullmatch(line)) is not None:
            at = number
            while lines[at].lstrip().startswith("#"):  # on a line of its own: of the next code
                at += 1
            yield mark["name"], at + 1


class _Without(ast.NodeTransformer):
    """Takes out what begins on a line: a statement, or else the first expression or keyword argument."""

    def __init__(self, line: int, instead: str):
        self.line = line
        self.instead = instead
        self.is_done = False

    def visit(self, node: ast.AST) -> Changed:
        is_whole = isinstance(node, ast.stmt | ast.expr | ast.keyword | ast.ExceptHandler)
        if is_whole and node.lineno == self.line and not self.is_done:
            self.is_done = True
            return self._changed(node)
        return self.generic_visit(node)

    def _changed(self, node: ast.AST) -> Changed:
        if re.fullmatch(r"-\w+", self.instead):
            return _Dropped(self.instead[1:]).visit(node)
        if self.instead == "pass":
            return _gone(node)
        new = ast.parse(self.instead).body
        if len(new) > 1:
            return [node if ast.unparse(each) == "..." else each for each in new]
        expression = new[0].value if isinstance(new[0], ast.Expr) else None
        part = _part(node)
        if expression is None or part == "":
            return new[0]
        if part is None:
            return expression
        setattr(node, part, expression)
        return node


def _part(node: ast.AST) -> str | None:
    """The attribute with the expression that a node is about: empty for a statement without one, None for itself."""
    if isinstance(node, ast.Expr) or not isinstance(node, ast.stmt | ast.keyword):
        return None if isinstance(node, ast.expr) else ""
    return next((each for each in ("test", "iter", "value") if hasattr(node, each)), "")


def _gone(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.ExceptHandler):
        node.type = ast.Tuple([], ast.Load())
        return node
    return None if isinstance(node, ast.keyword) else ast.Pass()


class _Dropped(ast.NodeTransformer):
    """Drops the first keyword argument or call of a name, condition of a comprehension, or last operand."""

    def __init__(self, what: str):
        self.what = what
        self.is_done = False

    def visit(self, node: ast.AST) -> ast.AST | None:
        if self.is_done:
            return node
        if isinstance(node, ast.keyword) and node.arg == self.what:
            self.is_done = True
            return None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == self.what:
            self.is_done = True
            return node.args[0]
        if isinstance(node, ast.comprehension) and node.ifs and self.what == "if":
            self.is_done = True
            node.ifs = []
            return node
        if isinstance(node, ast.BoolOp) and self.what == "last":
            self.is_done = True
            *first, _ = node.values
            return ast.BoolOp(node.op, first) if len(first) > 1 else first[0]
        return self.generic_visit(node)

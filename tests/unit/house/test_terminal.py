"""Whatever commands print goes through the one place that makes it safe to show."""

import ast
import re

from compactor.cli.entry import SUMMARIES
from tests.support.housekeeping import ROOT, trees

WRITERS = {"click.echo", "click.secho", "print", "Console", "sys.stdout.write", "sys.stderr.write"}
ALLOWED = {
    "compactor/cli/ui/terminal.py": "the one place",
    "compactor/cli/invocation.py": "the log, whose formatters escape",
    "compactor/ops/doctor/java.py": "run by make; shows where Java is",
    "compactor/demo/local_aws.py": "tells the demo where its stand-in for AWS is",
    "compactor/adapters/spark/s3a_jars.py": "run by make; shows a number",
}


def test_commands_print_in_one_place() -> None:
    """No other module writes to stdout or stderr."""
    found = {
        str(path.relative_to(ROOT))
        for path, tree in trees("compactor").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS
    }
    assert found == set(ALLOWED)


BEFORE_A_NAME = re.compile(rf"\bcompactor (--[a-z-]+|{'|'.join(SUMMARIES)})( --?[a-z-]+| [a-z]+)* $")
OF_ITS_OWN = {"made_by.kind", "kind"}
"""What is put into suggested commands and comes from no one else: kinds of redrives."""


def test_suggested_commands_are_quoted() -> None:
    """In each text with a command, what is put behind it is quoted by the one function."""
    found = [
        f"{path.relative_to(ROOT)}:{value.lineno} {ast.unparse(value.value)}"
        for path, tree in trees("compactor").items()
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr)
        for before, value in zip(text.values, text.values[1:], strict=False)
        if isinstance(before, ast.Constant) and BEFORE_A_NAME.search(str(before.value))
        if isinstance(value, ast.FormattedValue) and not _is_quoted(value.value)
    ]
    assert found == []


def _is_quoted(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and ast.unparse(value.func) == "quoted"
    return is_call or ast.unparse(value) in OF_ITS_OWN

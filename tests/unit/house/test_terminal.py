"""Whatever commands print goes through the one place that makes it safe to show."""

import ast

from tests.support.housekeeping import ROOT, trees

WRITERS = {"click.echo", "click.secho", "print", "Console", "sys.stdout.write", "sys.stderr.write"}
ALLOWED = {
    "compactor/cli/ui/terminal.py": "the one place",
    "compactor/cli/invocation.py": "the log, whose formatters escape",
    "compactor/ops/doctor/java.py": "run by make; shows where Java is",
    "compactor/demo/local_aws.py": "tells the demo where its stand-in for AWS is",
    "compactor/demo/full_way.py": "shows names of the demo's own",
    "compactor/demo/run.py": "shows names of the demo's own",
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

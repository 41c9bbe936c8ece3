"""What `import compactor` offers: all of its names, light, described, and nothing that is not promised."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from dataclasses import fields
from pathlib import Path

import pytest

import compactor
from compactor.core import errors
from tests.support.extras import NATIVE
from tools.json_schemas import descriptions_of, properties_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python.md"
FUNCTIONS = [name for name in compactor.__all__ if inspect.isfunction(getattr(compactor, name))]
RESULTS = ["BatchResult", "CompactResult", "Progress", "TraceResult", "VerifyResult"]
TREE = [
    name
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, errors.CompactorError) and each.__module__ == errors.__name__
]


def test_every_name_is_there() -> None:
    """`__all__` has the functions, their results and the whole tree of errors; each can be imported."""
    assert {*FUNCTIONS, *RESULTS, *TREE, "__version__"} == set(compactor.__all__)
    assert set(compactor.__all__) <= set(dir(compactor))
    assert sorted(compactor.__all__) == compactor.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = compactor.nothing  # type: ignore[attr-defined]


def test_type_checkers_see_the_same() -> None:
    """The stub has the same names, from the modules that they are loaded from."""
    stub = ast.parse((Path(compactor.__file__).parent / "__init__.pyi").read_text())
    imported = {
        alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert {*imported, "__version__"} == set(compactor.__all__)
    assert imported == {name: getattr(compactor, name).__module__ for name in imported}
    (listed,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert listed == compactor.__all__


def test_importing_is_light() -> None:
    """Neither the package nor an error of it loads more than itself."""
    script = (
        "import compactor, sys; compactor.SettingsError; "
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'compactor'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["compactor", "compactor.core", "compactor.core.errors"]


@NATIVE.needed
def test_a_call_loads_only_what_it_needs(tmp_path: Path) -> None:
    """What tables, topics, deep verification and AWS need takes as long to load as a small folder takes."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "2026-01-01.ndjson").write_text('{"id": 1}\n')
    script = f"""if True:
        import os, sys, compactor
        os.utime("{tmp_path}/raw/2026-01-01.ndjson", (1, 1))
        assert compactor.compact("{tmp_path}/raw", "{tmp_path}/rows", engine="native").rows == 1
        print(*sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    needless = {
        "compactor.sources.landing.lines",
        "compactor.ops.verify.contents",
        "compactor.table.committer",
        *("boto3", "pyarrow.compute", "pyarrow.dataset", "pyiceberg", "pyspark", "rich"),
    }
    assert needless & {*done.stdout.split()} == set()


def test_the_page_names_what_there_is() -> None:
    """The page names each function and result, and no attribute that the package does not have."""
    text = PAGE.read_text()
    named = set(re.findall(r"`compactor\.(\w+)", text))
    assert {*FUNCTIONS, *RESULTS} <= named <= {*compactor.__all__}
    assert all(f"`{name}`" in text for name in ("SettingsError", "TryAgainError", "AccessError", "StuckError"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_described(name: str) -> None:
    """Each argument has a type and a description, and the errors are named by their classes."""
    function = getattr(compactor, name)
    described = inspect.getdoc(function) or ""
    arguments = re.findall(r"^    (\w+): ", described.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert arguments == list(inspect.signature(function).parameters)
    raised = re.findall(r"^    (\w+): ", described.partition("Raises:\n")[2], re.MULTILINE)
    assert raised
    assert set(raised) <= {*TREE, "KeyboardInterrupt"}
    hints = function.__annotations__
    assert set(hints) == {*arguments, "return"}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_described(name: str) -> None:
    """Each field and property has a type and a description, and nothing changes a result that a call returned."""
    kind = getattr(compactor, name)
    members = {*(field.name for field in fields(kind)), *(each for each in properties_of(kind) if each[0] != "_")}
    assert members <= descriptions_of(kind).keys()
    assert {field.name for field in fields(kind)} <= typing.get_type_hints(kind).keys()
    assert kind.__dataclass_params__.frozen

"""The house is kept: nothing unused, nothing used that is not declared, and nothing that grew too long."""

import ast
import sys
import tomllib
import typing
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from compactor.core.extras import DISTRIBUTION, EXTRAS
from compactor.settings.settings import SECTIONS
from compactor.telemetry.metrics import CATALOGUE
from tests.support.housekeeping import (
    PRODUCT,
    ROOT,
    attributes,
    dead,
    definitions,
    imported,
    long_functions,
    texts,
    trees,
)
from tests.support.requirements import declared

MOST_LINES = 50

KEPT = {
    "CODECS": "names every codec, for documentation and for the tests of each of them",
    "ThreadBinWorkers": "the native engine without Spark, for tests and notebooks",
    "_config_headers": "pyiceberg calls it",
    "_create_session": "pyiceberg calls it",
    "format_commands": "click calls it",
    "make_context": "click calls it",
    "forget_clients": "functions keep their clients from call to call; tests need to begin anew",
    "model_config": "pydantic reads it",
    "getresponse": "urllib3 calls it",
    "_consume_headers": "botocore calls it",
    "readable": "the io module calls it",
    "readinto": "the io module calls it",
    "seekable": "the io module calls it",
    "shell_complete": "click calls it",
    "smoke_test": "the command of this name, which is loaded by its words",
}
"""What no code of the product uses, and why it is there all the same."""

BROUGHT = {
    "boto3": {"botocore", "s3transfer", "urllib3"},
    "pydantic": {"pydantic_core"},
    "pyiceberg": {"requests"},
    "pyspark": {"py4j"},
}
"""Packages that another one brings and whose names it uses in its own interface: its version decides on theirs."""

NOT_DECLARED = {
    "compactor_native": "the crate in native/, part of the wheel",
    "chdb": "bench/scoreboard/requirements.txt, in an environment of its own",
}

TOOLS = {
    "auditwheel": '_run("auditwheel"',
    "checkov": "tools.checkov",
    "boto3-stubs": 'module = ["jsonschema',  # mypy takes the types of boto3 from it
    "cyclonedx-bom": "cyclonedx_py",
    "duckdb-extension-avro": "$(READERS_BIN)/pip",
    "duckdb-extension-iceberg": "$(READERS_BIN)/pip",
    "duckdb-extensions": "$(READERS_BIN)/pip",
    "import-linter": "$(BIN)/lint-imports",
    "maturin": "[tool.maturin]",
    "setuptools": "[tool.setuptools",
    "mypy": "$(BIN)/mypy",
    "pandas": "$(READERS_BIN)/pip",
    "pytest-timeout": "\ntimeout = ",
    "ruff": "$(BIN)/ruff",
    "uv": 'with_name("uv")',
    "ziglang": "deploy.release",
}
"""Packages that no code imports, and where it says that they are used."""

EXTRA_FOLDERS = {
    "aws": "compactor/adapters/aws/",
    "demo": "compactor/demo/",
    "iceberg": "compactor/adapters/iceberg/",
    "kafka": "compactor/adapters/kafka/",
    "msk": "compactor/adapters/aws/",
    "report": "compactor/ops/report/",
    "spark": "compactor/adapters/spark/",
}
"""Where what an extra brings is imported."""

OWNERS = {"control": {"control", "policy", "self"}, "emr": {"emr", "wanted"}, "ecs": {"ecs", "wanted"}}
"""What a section of the settings is called where its keys are read, if not by its name."""


def test_no_dead_code() -> None:
    """Every function, class, constant and method is used by other code of the product, or is kept for a reason."""
    product = trees(*PRODUCT)
    assert {name: place for name, place in dead(product).items() if name not in KEPT} == {}
    # One that shares its name with something else that is used is kept as well.
    defined = {each.name for path, tree in product.items() for each in definitions(path, tree)}
    assert set(KEPT) <= defined, "kept, but gone"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): return f()", {"f"}),
        ("class A:\n  def m(self): pass\n  B = 1\nA()", {"m", "B"}),
        ("X = 1\nY: int = X", {"Y"}),
        ("class E(StrEnum):\n  ONE = 'one'\n  TWO = 'two'\nE('one')", {"TWO"}),
        ("from a import f\ndef g(): pass", {"g"}),
    ],
)
def test_dead_code_is_found(text: str, names: set[str]) -> None:
    """What only uses itself is dead, and so is what is never named."""
    assert set(dead({ROOT / "x.py": ast.parse(text)})) == names


def test_every_setting_is_read() -> None:
    """Each key of each section is taken of that section by some code."""
    modules = trees("compactor", "lambdas", "deploy", "glue_entry.py")
    read = set().union(*map(attributes, modules.values()))
    unread = [
        f"{section}.{key}"
        for section, kind in SECTIONS.items()
        for key in kind.model_fields
        if not any((owner, key) in read for owner in OWNERS.get(section, {section}))
    ]
    assert unread == []


def test_every_metric_is_emitted() -> None:
    """Each metric of the catalogue is named by the code that measures it."""
    modules = trees("compactor", "lambdas")
    named = set().union(*(texts(tree) for path, tree in modules.items() if path.name != "metrics.py"))
    assert set(CATALOGUE) <= named


def third_party(*places: str) -> dict[str, Path]:
    """The packages that are imported below some folders, each with a module that does."""
    own = {path.stem for path in ROOT.glob("*.py")} | {path.name for path in ROOT.iterdir() if path.is_dir()}
    of_tests = {path.stem for path in (ROOT / "tests").rglob("conftest.py")}
    return {
        name: path
        for path, tree in trees(*places).items()
        for name in imported(tree)
        if name not in sys.stdlib_module_names and name not in own | of_tests | set(NOT_DECLARED)
    }


def distributions(names: typing.Iterable[str]) -> set[str]:
    """The packages on PyPI that imported names come from."""
    known = packages_distributions()
    bringing = {brought: package for package, several in BROUGHT.items() for brought in several}
    return {bringing.get(name) or known.get(name, [name])[0].lower() for name in names}


@pytest.mark.parametrize(
    ("places", "groups"),
    [
        (("compactor", "lambdas", "glue_entry.py"), ("", *EXTRAS)),
        (("bench",), ("", *EXTRAS, "bench")),
        (("deploy", "tests"), ("", *EXTRAS, "bench", "dev")),
    ],
    ids=("package", "bench", "tools and tests"),
)
def test_what_is_imported_is_declared(places: tuple[str, ...], groups: tuple[str, ...]) -> None:
    """Nothing is imported that only happens to be there."""
    packages = set().union(*(declared()[group] for group in groups))
    assert distributions(third_party(*places)) <= packages


@pytest.mark.parametrize(("extra", "folder"), EXTRA_FOLDERS.items())
def test_what_needs_an_extra(extra: str, folder: str) -> None:
    """Only one folder imports what an extra brings, so that everything else works without it."""
    modules = {path: tree for path, tree in trees("compactor").items() if folder not in path.as_posix()}
    names = set().union(*(imported(tree) for tree in modules.values())) & set(third_party("compactor"))
    assert not distributions(names) & declared()[extra]


def test_every_extra_is_known() -> None:
    """The extras of pyproject.toml are those that messages name, each by a package that only it brings."""
    packages = declared()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == set(EXTRAS) == set(EXTRA_FOLDERS)
    assert project["name"] == DISTRIBUTION
    assert all(distributions([package]) <= packages[extra] for extra, (package, _) in EXTRAS.items())


def test_what_is_declared_is_used() -> None:
    """Every package that pyproject.toml names is imported, or is a tool that the Makefile or its settings use."""
    places = ("Makefile", "pyproject.toml", "deploy/release.py", "tools/lock.py", "tools/sbom.py")
    settings = "\n".join((ROOT / name).read_text() for name in places)
    packages = declared()
    assert set().union(*(packages[each] for each in ("", *EXTRAS))) <= distributions(
        third_party("compactor", "lambdas", "glue_entry.py")
    )
    used = distributions(third_party(*PRODUCT, "tests"))
    assert set().union(*packages.values()) - used == set(TOOLS)
    assert [tool for tool, sign in TOOLS.items() if sign not in settings] == []


def test_no_function_is_long() -> None:
    """No function is over 50 lines, its documentation not counted."""
    assert [long for path, tree in trees(*PRODUCT).items() for long in long_functions(path, tree, MOST_LINES)] == []

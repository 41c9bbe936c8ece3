"""What is shipped: all that the functions import, nothing that they must not have, and the same bytes each time."""

import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from deploy.errors import PackagingError
from deploy.imported_modules import ROOT, imported_files
from deploy.package import MAX_ZIP_BYTES, build_functions, build_wheel
from deploy.pins import FUNCTION_PACKAGES, job_modules, job_packages, pinned, pins

HANDLERS = ("manifest_builder", "manifest_sealer", "control_plane")


def install_from_here(site: Path) -> None:
    """The same packages as pip would install, but those of this machine; it takes no network."""
    for line in pinned(FUNCTION_PACKAGES):
        found = distribution(line.partition("==")[0])
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(str(found.locate_file(file))), target)


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist") / "lambda.zip"
    build_functions(target, install_from_here)
    return target


def test_what_is_in_the_zip(functions: Path) -> None:
    """The handlers and what they import, as it is here; no Spark, no Arrow, no command line, nothing compiled twice."""
    found = content(functions)
    packages = {name.partition("/")[0] for name in found if ".dist-info" not in name}
    expected = {
        "annotated_types",
        "compactor",
        "lambdas",
        "orjson",
        "pydantic",
        "pydantic_core",
        "typing_extensions.py",
    }
    assert packages == expected | {"typing_inspection"}
    for name, data in found.items():
        if name.startswith(("compactor/", "lambdas/")):
            assert data == (ROOT / name).read_bytes()
    assert {f"lambdas/{handler}.py" for handler in HANDLERS} <= found.keys()
    assert not [
        name for name in found if name.startswith(("compactor/cli/", "compactor/demo/", "compactor/adapters/spark"))
    ]
    assert not [name for name in found if name.endswith(".pyc")]
    assert functions.stat().st_size < MAX_ZIP_BYTES


def test_the_zip_is_enough(functions: Path, tmp_path: Path) -> None:
    """Each handler can be imported from the zip alone; not even boto3, which Lambda brings, has to be there yet."""
    with zipfile.ZipFile(functions) as archive:
        archive.extractall(tmp_path)
    script = f"""
import importlib, sys
sys.path[:0] = [{str(tmp_path)!r}]
for name in {HANDLERS!r}:
    assert callable(importlib.import_module(f"lambdas.{{name}}").handler)
assert importlib.import_module("compactor").__file__.startswith({str(tmp_path)!r})
assert not {{"pyspark", "pyarrow", "click", "cramjam"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, check=True)


def test_the_same_code_makes_the_same_bytes(functions: Path, tmp_path: Path) -> None:
    """A second build is the first one, so that a deployment without changes has none."""
    build_functions(tmp_path / "again.zip", install_from_here)
    assert (tmp_path / "again.zip").read_bytes() == functions.read_bytes()


def test_an_import_that_functions_cannot_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not shipped, imported by anything that a function may reach, ends the build with its name."""
    for folder in ("lambdas", "compactor"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "lambdas" / "one.py").write_text("from compactor import late\n")
    (tmp_path / "compactor" / "late.py").write_text("def f():\n    import pyarrow\n")
    monkeypatch.setattr("deploy.package.ROOT", tmp_path)
    monkeypatch.setattr("deploy.package.imported_files", lambda entries: imported_files(entries, tmp_path))
    with pytest.raises(PackagingError, match=r"compactor/late\.py imports pyarrow, which functions do not have"):
        build_functions(tmp_path / "lambda.zip", install_from_here)


def test_versions_are_those_that_are_tested() -> None:
    """What is shipped has the versions of requirements.txt, with all that it needs in turn."""
    versions = pins()
    assert pinned(["boto3"]) == [
        f"{name}=={versions[name]}"
        for name in ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")
    ]
    assert "pyspark" not in job_packages(frozenset({"pyspark"}))
    assert f"pydantic=={versions['pydantic']}" in job_modules().split(",")
    assert not any(name in job_modules() for name in ("pyspark", "pyarrow", "boto3"))


@pytest.mark.large
def test_what_pip_makes(tmp_path: Path) -> None:
    """With a package index at hand: compiled for Lambda's Python, small enough, and a wheel of what runs."""
    build_functions(tmp_path / "lambda.zip")
    compiled = [name for name in content(tmp_path / "lambda.zip") if name.endswith(".so")]
    assert compiled
    assert all("cpython-313-x86_64" in name for name in compiled)
    wheel = build_wheel(tmp_path)
    tops = {name.partition("/")[0].partition("-")[0] for name in content(wheel)}
    assert tops == {"compactor", "lambdas"}
    first = wheel.read_bytes()
    assert build_wheel(tmp_path).read_bytes() == first

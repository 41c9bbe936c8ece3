"""The zip and the wheels hold what the functions and the job import, nothing else, and the same bytes each time."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from deploy import ROOT
from deploy.native_wheel import GLUE_GLIBC, build_native_wheel, glibc_line, glibc_of
from deploy.package import MAX_ZIP_BYTES, build_functions, build_native, build_wheel
from deploy.pins import FUNCTION_PACKAGES, job_modules, job_packages, pinned, pins
from deploy.pip import PackagingError
from tests.support.extras import CARGO
from tools.json_schemas import NAMES

HANDLERS = ("manifest_builder", "manifest_sealer", "control_plane")


def install_from_here(site: Path) -> None:
    """Copy the packages that pip would install from this machine, without a network."""
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
    """The zip holds the handlers and what they import, unchanged; no Spark, Arrow, command line or bytecode."""
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
    """Each handler can be imported from the zip alone, even without boto3, which Lambda provides."""
    with zipfile.ZipFile(functions) as archive:
        archive.extractall(tmp_path)
    script = f"""
import importlib, sys
sys.path[:0] = [{str(tmp_path)!r}]
for name in {HANDLERS!r}:
    assert callable(importlib.import_module(f"lambdas.{{name}}").handler)
assert importlib.import_module("compactor").__file__.startswith({str(tmp_path)!r})
assert not {{"pyspark", "pyarrow", "click", "cramjam", "jinja2", "pygal"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, check=True)


def test_the_same_code_makes_the_same_bytes(functions: Path, tmp_path: Path) -> None:
    """A second build makes the same bytes, so deploying unchanged code changes nothing."""
    build_functions(tmp_path / "again.zip", install_from_here)
    assert (tmp_path / "again.zip").read_bytes() == functions.read_bytes()


def test_an_import_that_functions_cannot_have(tmp_path: Path) -> None:
    """The build fails and names a package that a module imports, even late, and that is not shipped."""
    for folder in ("lambdas", "compactor"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "lambdas" / "one.py").write_text("from compactor import late\n")
    (tmp_path / "compactor" / "late.py").write_text("def f():\n    import pyarrow\n")
    with pytest.raises(PackagingError, match=r"compactor\.late imports pyarrow, which functions do not have"):
        build_functions(tmp_path / "lambda.zip", install_from_here, tmp_path)


def test_versions_are_those_that_are_tested() -> None:
    """Packages and their dependencies are shipped in the versions of requirements.txt."""
    versions = pins()
    assert pinned(["boto3"]) == [
        f"{name}=={versions[name]}"
        for name in ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")
    ]
    assert "boto3" in job_packages()
    assert not {"pyspark", "pygal", "moto"} & set(job_packages())
    assert f"pydantic=={versions['pydantic']}" in job_modules().split(",")
    assert not any(name in job_modules() for name in ("pyspark", "pyarrow", "boto3"))


def test_the_job_does_without_the_report() -> None:
    """Neither the job on Glue nor the start of the command line loads the libraries of the report's page."""
    script = """
import sys
import compactor.cli.entry, glue_entry
assert not {"jinja2", "markupsafe", "pygal"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def test_the_glibc_of_the_native_wheel() -> None:
    """The message compares it with Glue's; a newer glibc and a wheel without a manylinux tag for x86_64 are errors."""
    name = "compactor_native-0.1.0-cp311-abi3-{}.whl"
    assert glibc_of(Path(name.format("manylinux_2_17_x86_64.manylinux2014_x86_64"))) == (2, 17)
    assert glibc_line(Path(name.format("manylinux_2_34_x86_64"))) == "needs glibc 2.34, no newer than Glue's 2.34"
    with pytest.raises(PackagingError, match=r"needs glibc 2\.35, expected 2\.34 at most"):
        glibc_line(Path(name.format("manylinux_2_35_x86_64")))
    for tag in ("linux_x86_64", "manylinux_2_34_aarch64", "macosx_11_0_arm64"):
        with pytest.raises(PackagingError, match="expected a manylinux tag for x86_64"):
            glibc_of(Path(name.format(tag)))


def test_packaging_without_cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cargo one line says so, and wheels of earlier builds are deleted."""
    old = tmp_path / "compactor_native-0.0.1-cp311-abi3-manylinux_2_34_x86_64.whl"
    old.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        build_native(tmp_path) == "cargo is not installed: no wheel of the native engine, the job uses the Spark engine"
    )
    assert not old.exists()


def test_packaging_on_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine unlike Glue's nothing is built, and one line says so."""
    monkeypatch.setattr("deploy.package.has_cargo", lambda: True)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert " aarch64: no wheel of the native engine, the job uses the Spark engine" in build_native(tmp_path)


def installing_with(path: Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m deploy.native_wheel` with this PATH, where no native engine was installed before."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "deploy.native_wheel"],
        cwd=ROOT,
        env={**os.environ, "PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_installing_without_cargo(tmp_path: Path) -> None:
    """One line says why the native engine is missing, and that the Spark engine is used."""
    done = installing_with(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "The native engine was not built, the Spark engine is used: cargo is not installed\n"


def test_a_native_engine_that_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the log, which has the reason; no wheel is left."""
    monkeypatch.setattr("deploy.native_wheel.NATIVE", tmp_path)
    with pytest.raises(PackagingError, match=r"the build of native/ failed, see .*/build\.log$"):
        build_native_wheel(tmp_path, tmp_path / "build.log")
    assert (tmp_path / "build.log").read_text()
    assert list(tmp_path.glob("*.whl")) == []


@pytest.mark.large
@pytest.mark.timeout(1800)
@CARGO.needed
def test_the_native_wheel(tmp_path: Path) -> None:
    """The wheel fits Python 3.11 and later and Glue, contains no path of this machine, and is the same each time."""
    wheel = build_native_wheel(tmp_path, tmp_path / "build.log")
    assert "-cp311-abi3-" in wheel.name
    assert glibc_of(wheel) <= GLUE_GLIBC
    first = wheel.read_bytes()
    [compiled] = [data for name, data in content(wheel).items() if name.endswith(".abi3.so")]
    assert not [place for place in (str(ROOT), str(Path.home())) if place.encode() in compiled]
    assert build_native_wheel(tmp_path, tmp_path / "build.log").read_bytes() == first


@pytest.mark.large
def test_what_pip_makes(tmp_path: Path) -> None:
    """With a package index: compiled for Lambda's Python, small enough, and a wheel of the packages that run."""
    build_functions(tmp_path / "lambda.zip")
    compiled = [name for name in content(tmp_path / "lambda.zip") if name.endswith(".so")]
    assert compiled
    assert all("cpython-313-x86_64" in name for name in compiled)
    wheel = build_wheel(tmp_path)
    tops = {name.partition("/")[0].partition("-")[0] for name in content(wheel)}
    assert tops == {"compactor"}
    assert {f"compactor/cli/schemas/{name}.schema.json" for name in NAMES} <= set(content(wheel))
    assert {"page.html.j2", "style.css"} <= {Path(name).name for name in content(wheel)}
    first = wheel.read_bytes()
    assert build_wheel(tmp_path).read_bytes() == first

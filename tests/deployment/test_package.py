"""The zips and the wheel hold what the functions and the job import, nothing else, and the same bytes each time."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import pytest

from compactor import __version__
from deploy import ROOT
from deploy.job_wheels import download_wheels, wheel_faults
from deploy.locks import job_modules, job_packages, locked
from deploy.package import MAX_UNZIPPED_BYTES, MAX_ZIP_BYTES, build_functions, build_job_wheel, build_job_zip
from deploy.pip import PackagingError
from deploy.wheel import GLUE_GLIBC, build_pure_wheel, build_wheel, glibc_line, glibc_of
from tests.deployment.job_wheels import wheel_names
from tests.support.extras import CARGO
from tools.json_schemas import NAMES

MAN_PAGE = f"ndjson_compactor-{__version__}.data/data/share/man/man1/compactor.1"
HANDLERS = ("manifest_builder", "manifest_sealer", "control_plane")
SERVICES = ("cloudwatch", "dynamodb", "ecs", "emr-serverless", "glue", "s3", "sns", "sqs")


def install_from_here(site: Path) -> None:
    """Copy the packages that pip would install from this machine, without a network."""
    copy_packages(site, locked("functions"))


def install_orjson(site: Path) -> None:
    copy_packages(site, {"orjson": locked("functions")["orjson"]})


def copy_packages(site: Path, versions: Mapping[str, str]) -> None:
    for name, version in versions.items():
        found = distribution(name)
        assert found.version == version
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
        *("annotated_types", "compactor", "lambdas", "orjson", "pydantic", "pydantic_core", "typing_extensions.py"),
        *("typing_inspection", "zlib_ng"),
        *("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six.py", "urllib3"),
    }
    assert packages == expected
    for name, data in found.items():
        if name.startswith(("compactor/", "lambdas/")):
            assert data == (ROOT / name).read_bytes()
    assert {f"lambdas/{handler}.py" for handler in HANDLERS} <= found.keys()
    assert not [
        name for name in found if name.startswith(("compactor/cli/", "compactor/demo/", "compactor/adapters/spark"))
    ]
    assert not [name for name in found if name.endswith(".pyc")]
    assert functions.stat().st_size < MAX_ZIP_BYTES
    assert sum(map(len, found.values())) < MAX_UNZIPPED_BYTES / 2


def test_the_zip_is_enough(functions: Path, tmp_path: Path) -> None:
    """Each handler can be imported from the zip alone, and makes its clients by the boto3 that is in it."""
    with zipfile.ZipFile(functions) as archive:
        archive.extractall(tmp_path)
    script = f"""
import importlib, sys
sys.path[:0] = [{str(tmp_path)!r}]
for name in {HANDLERS!r}:
    assert callable(importlib.import_module(f"lambdas.{{name}}").handler)
assert importlib.import_module("compactor").__file__.startswith({str(tmp_path)!r})
from compactor.adapters.aws.clients import aws_client
for service in {SERVICES!r}:
    aws_client(service, "eu-central-1")
import boto3, botocore, urllib3
for package in (boto3, botocore, urllib3):
    assert package.__file__.startswith({str(tmp_path)!r})
    assert package.__version__ == {locked("functions")!r}[package.__name__]
assert not {{"pyspark", "pyarrow", "click", "cramjam", "jinja2", "pygal"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", script], cwd=tmp_path, check=True)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree with one function and one module, which it imports."""
    for folder in ("lambdas", "compactor"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "lambdas" / "one.py").write_text("from compactor import late\n")
    (tmp_path / "compactor" / "late.py").write_text("def f():\n    import orjson\n")
    return tmp_path


def test_the_same_code_makes_the_same_bytes(small: Path) -> None:
    """A second build makes the same bytes, so deploying unchanged code changes nothing."""
    for name in ("first.zip", "again.zip"):
        build_functions(small / name, install_orjson, small)
    assert (small / "again.zip").read_bytes() == (small / "first.zip").read_bytes()
    assert {"lambdas/one.py", "compactor/late.py", "orjson/__init__.py"} <= content(small / "first.zip").keys()


def test_an_import_that_functions_cannot_have(small: Path) -> None:
    """The build fails and names a package that a module imports, even late, and that is not shipped."""
    (small / "compactor" / "late.py").write_text("def f():\n    import pyarrow\n")
    with pytest.raises(PackagingError, match=r"compactor\.late imports pyarrow, which is not in the functions"):
        build_functions(small / "lambda.zip", install_orjson, small)


@pytest.mark.parametrize("name", ["base", "job", "functions"])
def test_versions_are_those_that_are_tested(name: str) -> None:
    """What is shipped has the versions of the tests."""
    tested = locked("development")
    assert locked(name) == {package: tested[package] for package in locked(name)}


def test_what_the_job_installs() -> None:
    """The job has boto3 and no Spark, which is part of Glue; Glue 5.1 also brings Arrow and boto3."""
    versions = locked("job")
    assert {"boto3", "pyarrow", "orjson", "python-dateutil"} <= versions.keys()
    assert not {"pyspark", "pygal", "moto"} & versions.keys()
    assert "boto3" in job_packages()
    assert not {"pyspark", "pygal", "moto"} & set(job_packages())
    assert f"pydantic=={versions['pydantic']}" in job_modules()
    assert not {"pyspark", "pyarrow", "boto3"} & {module.partition("==")[0] for module in job_modules()}


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
    name = "ndjson_compactor-0.1.0-cp311-abi3-{}.whl"
    assert glibc_of(Path(name.format("manylinux_2_17_x86_64.manylinux2014_x86_64"))) == (2, 17)
    assert glibc_line(Path(name.format("manylinux_2_34_x86_64"))) == "needs glibc 2.34, no newer than Glue's 2.34"
    with pytest.raises(PackagingError, match=r"needs glibc 2\.35, expected at most 2\.34"):
        glibc_line(Path(name.format("manylinux_2_35_x86_64")))
    for tag in ("linux_x86_64", "manylinux_2_34_aarch64", "macosx_11_0_arm64"):
        with pytest.raises(PackagingError, match="expected a manylinux tag for x86_64"):
            glibc_of(Path(name.format(tag)))


def test_the_zip_of_the_job(tmp_path: Path) -> None:
    """The zip holds the whole package with its data, nothing compiled, and the same bytes each time."""
    build_job_zip(tmp_path / "job.zip")
    found = content(tmp_path / "job.zip")
    assert {name.partition("/")[0] for name in found} == {"compactor"}
    assert {f"compactor/cli/schemas/{name.replace(' ', '-')}.schema.json" for name in NAMES} <= set(found)
    assert {"page.html.j2", "style.css", "log4j2.properties"} <= {Path(name).name for name in found}
    assert not [name for name in found if name.endswith((".pyc", ".so"))]
    build_job_zip(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "job.zip").read_bytes()


@pytest.mark.parametrize(
    ("machine", "cargo", "said"),
    [("x86_64", False, "cargo is not installed"), ("aarch64", True, "Glue is Linux x86_64, this is Linux aarch64")],
    ids=("no cargo", "another machine"),
)
def test_packaging_where_the_native_engine_cannot_be_built(
    machine: str, cargo: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without cargo, or on a machine unlike Glue's, the wheel is one without the engine, and one line says so."""
    monkeypatch.setattr("deploy.wheel.cargo_fault", lambda: "" if cargo else "cargo is not installed")
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.system", lambda: "Linux")

    def build(folder: Path) -> Path:
        (folder / "ndjson_compactor-0.1.0-py3-none-any.whl").touch()
        return folder / "ndjson_compactor-0.1.0-py3-none-any.whl"

    monkeypatch.setattr("deploy.package.build_pure_wheel", build)
    assert f"  {said}: without the native engine, the job uses the Spark engine" in build_job_wheel(tmp_path)


def test_sources_without_cargo(tmp_path: Path) -> None:
    """A build of the wheel without cargo leaves the native engine out, and says so unless it was told to."""
    script = "import wheel_backend as backend; print(backend.get_requires_for_build_wheel({}))"
    for settings, lines in (("None", 1), ("{'native': 'no'}", 0)):
        done = subprocess.run(
            [sys.executable, "-S", "-c", script.format(settings)],
            cwd=ROOT / "native",
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith("['setuptools==")
        assert [line.partition(",")[0] for line in done.stderr.splitlines()] == ["cargo is not installed"] * lines


def test_a_native_engine_that_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the log, which has the reason; no wheel is left."""
    old = tmp_path / "ndjson_compactor-0.0.1-cp311-abi3-manylinux_2_34_x86_64.whl"
    old.touch()
    monkeypatch.setattr("deploy.wheel.ROOT", tmp_path)
    with pytest.raises(PackagingError, match=r"the build of native/ failed, see .*/build\.log$"):
        build_wheel(tmp_path, tmp_path / "build.log")
    assert (tmp_path / "build.log").read_text()
    assert not old.exists()


def test_one_version() -> None:
    """pyproject.toml and the package name the same version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__


@pytest.mark.large
@pytest.mark.timeout(1800)
@CARGO.needed
def test_the_wheel(tmp_path: Path) -> None:
    """The wheel fits Python 3.11 and later and Glue, contains no path of this machine, and is the same each time."""
    wheel = build_wheel(tmp_path, tmp_path / "build.log")
    assert "-cp311-abi3-" in wheel.name
    assert glibc_of(wheel) <= GLUE_GLIBC
    first = wheel.read_bytes()
    found = content(wheel)
    tops = {name.partition("/")[0].partition("-")[0] for name in found}
    assert tops == {"compactor", "compactor_native", "ndjson_compactor"}
    assert {f"compactor/cli/schemas/{name.replace(' ', '-')}.schema.json" for name in NAMES} <= set(found)
    assert found[MAN_PAGE] == (ROOT / "docs" / "compactor.1").read_bytes()
    [compiled] = [data for name, data in found.items() if name.endswith(".abi3.so")]
    assert not [place for place in (str(ROOT), str(Path.home())) if place.encode() in compiled]
    assert build_wheel(tmp_path, tmp_path / "build.log").read_bytes() == first


def job_wheels(folder: Path, **others: str) -> list[Path]:
    """Wheels of the job's packages as pip would name them, some with other endings than `py3-none-any`."""
    found = []
    for name, version in locked("job").items():
        wheel = folder / f"{name.replace('-', '_')}-{others.get(name, f'{version}-py3-none-any')}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}/__init__.py", "")
        found.append(wheel)
    return found


def test_wheels_for_glue(tmp_path: Path) -> None:
    """Wheels for Glue's Python and a glibc that is no newer are taken, whatever this machine has."""
    orjson, pyarrow = locked("job")["orjson"], locked("job")["pyarrow"]
    endings = {
        "orjson": f"{orjson}-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "pyarrow": f"{pyarrow}-cp313-cp313-manylinux_2_34_x86_64",
    }
    assert list(wheel_faults(job_wheels(tmp_path, **endings))) == []


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("{}-cp313-cp313-manylinux_2_35_x86_64", "and at most glibc 2.34, as on Glue"),
        ("{}-cp313-cp313-manylinux_2_28_aarch64", "expected x86_64, Python 3.13"),
        ("{}-cp312-cp312-manylinux_2_28_x86_64", "expected x86_64, Python 3.13"),
        ("{}-cp314-abi3-manylinux_2_28_x86_64", "expected x86_64, Python 3.13"),
        ("{}-cp313-cp313-musllinux_1_2_x86_64", "expected x86_64, Python 3.13"),
        ("0.0.1-py3-none-any", "orjson: 0.0.1, expected "),
    ],
)
def test_wheels_that_do_not_fit_glue(tmp_path: Path, ending: str, words: str) -> None:
    """A newer glibc, another machine, Python or version is refused, each with what was expected."""
    [fault] = wheel_faults(job_wheels(tmp_path, orjson=ending.format(locked("job")["orjson"])))
    assert words in fault


def test_wheels_with_an_interpreter(tmp_path: Path) -> None:
    """An interpreter of another machine is refused, and so are packages that are missing or too many."""
    first, *others = job_wheels(tmp_path)
    for name in ("pyvenv.cfg", "x/bin/python3.13"):
        with zipfile.ZipFile(first, "a") as archive:
            archive.writestr(name, "home = /root/.pyenv")
    assert [fault.partition(": contains ")[2] for fault in wheel_faults([first, *others])] == [
        "pyvenv.cfg; expected no interpreter",
        "x/bin/python3.13; expected no interpreter",
    ]
    (more := tmp_path / "pyspark-4.0.0-py3-none-any.whl").write_bytes(others[0].read_bytes())
    assert [fault.partition(",")[0] for fault in wheel_faults([first, *others[1:], more])][2:] == [
        f"{others[0].name.partition('-')[0].replace('_', '-')}: missing",
        "pyspark: 4.0.0",
    ]


@pytest.mark.large
def test_the_wheels_that_pip_downloads(tmp_path: Path) -> None:
    """With a package index: the wheels of the lock file for Glue, without an interpreter of Glue's version here."""
    wheels = download_wheels(tmp_path / "wheels")
    assert [wheel.name for wheel in wheels] == sorted(wheel_names()[1:])
    compiled = [wheel for wheel in wheels if "-cp313-" in wheel.name]
    assert compiled
    with zipfile.ZipFile(compiled[0]) as archive:
        assert any("cpython-313-x86_64-linux-gnu.so" in name for name in archive.namelist())


@pytest.mark.large
def test_what_pip_makes(tmp_path: Path) -> None:
    """With a package index: compiled for Lambda's Python, small enough, and a wheel of the packages that run."""
    build_functions(tmp_path / "lambda.zip")
    compiled = [name for name in content(tmp_path / "lambda.zip") if name.endswith(".so")]
    assert compiled
    assert all("cpython-313-x86_64" in name for name in compiled)
    wheel = build_pure_wheel(tmp_path)
    tops = {name.partition("/")[0].partition("-")[0] for name in content(wheel)}
    assert tops == {"compactor", "ndjson_compactor"}
    assert {"page.html.j2", "style.css"} <= {Path(name).name for name in content(wheel)}
    assert content(wheel)[MAN_PAGE] == (ROOT / "docs" / "compactor.1").read_bytes()
    first = wheel.read_bytes()
    assert build_pure_wheel(tmp_path).read_bytes() == first

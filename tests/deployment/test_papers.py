"""The image, the workflows and the backend agree with the lock files and the support matrix."""

import re
import tomllib
from typing import Any

import pytest
import yaml

from deploy import ROOT
from deploy.locks import locked
from tools.lock import CONTENTS

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").iterdir()}


def test_the_image() -> None:
    """It is slim, installs by hashes for its own Python, and runs as a user without rights."""
    text = (ROOT / "Dockerfile").read_text()
    [image] = re.findall(r"^FROM (\S+)$", text, re.MULTILINE)
    version = CONTENTS["job"][CONTENTS["job"].index("--python-version") + 1]
    assert re.fullmatch(rf"python:{re.escape(version)}-slim@sha256:[0-9a-f]{{64}}", image)
    assert re.findall(r"^USER (\S+)$", text, re.MULTILINE) == ["10001:10001"]
    assert text.index("--require-hashes --requirement /build/locks/job.txt") < text.index("/build/dist/")
    assert not re.search(r"^(ADD|ENV|ARG)\b|http|sudo|apt", text, re.MULTILINE)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert allowed == ["*", "!locks/job.txt", "!dist/ndjson_compactor-*.whl"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_need_no_secret(name: str) -> None:
    """A workflow may only read, names no secret, takes each action in one exact version, and runs what exists here."""
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    used = re.findall(r"uses: (\S+)", text)
    assert [each for each in used if not re.search(r"@([0-9a-f]{40}|release/v1)$", each)] == []
    makefile = (ROOT / "Makefile").read_text()
    steps = [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]
    for step in steps:
        for target in re.findall(r"^make ([a-z ]+)$", dict(step).get("run", ""), re.MULTILINE):
            assert all(f"\n{each}:" in makefile for each in target.split())


def test_every_python_of_the_matrix_is_tested() -> None:
    """What the metadata, the workflows and the page of the support matrix say of Python is the same."""
    checks, wheel = WORKFLOWS["checks"]["jobs"]["checks"], WORKFLOWS["release"]["jobs"]["wheel"]
    assert checks["strategy"]["matrix"]["python"] == PYTHONS
    assert wheel["strategy"]["matrix"]["image"] == [f"python:{each}-slim" for each in PYTHONS]
    page = (ROOT / "docs" / "upgrade.md").read_text()
    assert f"| Python | {', '.join(PYTHONS)} |" in page
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_ranges_of_the_matrix() -> None:
    """The page names the ranges of pyproject.toml."""
    page = (ROOT / "docs" / "upgrade.md").read_text()
    extras = PROJECT["optional-dependencies"]
    assert "pyarrow>=18,<24" in PROJECT["dependencies"]
    assert "| Arrow | pyarrow 18 to 23 |" in page
    assert extras["spark"] == ["pyspark>=4.1,<4.2"]
    assert extras["aws"] == ["boto3>=1.40,<2"]
    assert "boto3 1.40 and later" in page


def test_the_backend_builds_with_the_tool_that_is_tested() -> None:
    """The backend and the lock files name one version of maturin."""
    text = (ROOT / "native" / "wheel_backend.py").read_text()
    assert f'MATURIN = "maturin=={locked("development")["maturin"]}"' in text
    assert locked("release")["maturin"] == locked("development")["maturin"]

"""What Terraform and CDK deploy is what `make deploy` deploys: the same template, parameters and files."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session

from compactor.core.errors import SettingsError
from deploy import ROOT
from deploy.__main__ import deploy
from deploy.render import render
from deploy.stack import Stack
from tests.deployment.test_deploying import root, session

__all__ = ["root", "session"]  # fixtures

MODULE = ROOT / "deploy" / "terraform" / "main.tf"


def test_the_same_stack(session: Any, root: Path) -> None:
    """Template, parameters and keys are those of a deployment; each file is there."""
    template, described = render("dev", Session, root)
    found = json.loads(described.read_text())
    deploy("dev", Session, confirm=lambda: True, root=root)
    deployed = Stack(session.client("cloudformation"), found["name"]).deployed()
    assert json.loads(template.read_text()) == deployed.template
    assert found["parameters"] == deployed.parameters
    assert found["tags"] == deployed.tags
    listed = session.client("s3").list_objects_v2(Bucket=found["bucket"])["Contents"]
    keys = {each["Key"] for each in listed}
    assert keys - found["files"].keys() == {key for key in keys if "/template/" in key}
    assert all(Path(path).is_file() for path in found["files"].values())


@pytest.mark.usefixtures("session")
def test_what_a_deployment_would_fail_by_is_found(root: Path) -> None:
    """The checks of a deployment are made before anything is written."""
    shutil.rmtree(root / "dist" / "job-wheels")
    with pytest.raises(SettingsError, match="make glue-environment"):
        render("dev", Session, root)
    assert not (root / "dist" / "stack").exists()


@pytest.mark.usefixtures("session")
def test_a_job_that_other_tools_would_delete_below_its_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They do not end its runs, so the command says who does."""
    settings = root / "config" / "dev.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[control]", "[control]\nshards = 2", 1))
    deploy("dev", Session, confirm=lambda: True, root=root)
    settings.write_text(before)
    render("dev", Session, root)
    assert "Job compactor-dev-shard-2 is not in the template any more, and its runs" in capsys.readouterr().err


@pytest.mark.usefixtures("session")
def test_the_module_reads_what_is_written(root: Path) -> None:
    """Every name after `local.stack.` is a key of stack.json, and so is every one in the page's example."""
    found = json.loads(render("dev", Session, root)[1].read_text())
    assert set(re.findall(r"local\.stack\.(\w+)", MODULE.read_text())) == found.keys()
    page = (ROOT / "deploy" / "README.md").read_text()
    assert set(re.findall(r'stack\["(\w+)"\]', page)) <= found.keys()
    if terraform := shutil.which("terraform"):
        done = subprocess.run([terraform, "fmt", "-check", "-diff", str(MODULE)], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout

"""The job on EMR Serverless and ECS: template and rights, and the archive of packages."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from cfnlint.api import lint_file

from compactor.adapters.aws import ecs_job, emr_job
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from compactor.wiring.control import job_runs, policy_of
from deploy.emr_archive import EMR_PYTHON, build_archive
from deploy.pip import PackagingError
from deploy.resolved import Resolver, pseudo_parameters
from deploy.rights.__main__ import RUNTIME
from deploy.rights.grants import GRANTS
from deploy.rights.runtime_grants import RUNTIME_GRANTS
from deploy.rights.template_text import with_statements
from deploy.runtime import TEMPLATE
from deploy.template_file import load_template
from tests.deployment.resolving import ROOT
from tests.deployment.runtimes import FOR_ECS
from tests.support.archives import unpack

OUTPUTS = {
    "ApplicationId": "00f1abcd2efg3h09",
    "RoleArn": "arn:aws:iam::123456789012:role/compactor-dev-emr-job",
    "LogGroup": "/compactor/emr/compactor-dev",
}


def test_the_template_is_right() -> None:
    """The linter finds nothing, and its statements are those of the table."""
    assert [str(match) for match in lint_file(TEMPLATE)] == []
    assert with_statements(TEMPLATE.read_text(), RUNTIME) == TEMPLATE.read_text(), "python -m deploy.rights"


@pytest.mark.parametrize(
    ("module", "policy", "service", "number"),
    [(emr_job, "EmrControlPolicy", "emr-serverless", 3), (ecs_job, "EcsControlPolicy", "ecs", 4)],
)
def test_the_control_plane_may_do_what_it_does(module: ModuleType, policy: str, service: str, number: int) -> None:
    """Its rights are the calls of the adapter, on what this stack made alone; on ECS, listing is by cluster."""
    source = Path(str(module.__file__)).read_text()
    calls = set(re.findall(r"self\.(?:emr|ecs)\.(\w+)\(\s*(?:applicationId|cluster)", source))
    calls |= set(re.findall(r'get_paginator\("(\w+)"\)', source))
    called = {f"{service}:{call.title().replace('_', '')}" for call in calls}
    granted = {action for grant in RUNTIME_GRANTS[policy] for action in grant.actions}
    at_start = {"ecs:TagResource"} if service == "ecs" else set()
    assert granted == called | at_start | {"iam:PassRole"}
    assert len(called) == number
    document = load_template(TEMPLATE)["Resources"][policy]["Properties"]["PolicyDocument"]
    anywhere = [each for each in document["Statement"] if each["Resource"] == "*"]
    assert all("ecs:cluster" in each["Condition"]["ArnEquals"] for each in anywhere)


def test_the_job_may_do_what_it_may_on_glue() -> None:
    """It has the rights of the job's role, without what Glue alone keeps in buckets."""
    of_glue = {"spark ui", "output of the job", "errors of the job"}
    granted = [grant for grant in GRANTS["JobRole"] if not grant.only_if]  # topics need a network, which Glue has
    on_glue = {(action, place) for grant in granted for action in grant.actions for place in grant.places}
    here = {
        (action, place) for grant in RUNTIME_GRANTS["JobRole"] for action in grant.actions for place in grant.places
    }
    assert {(action, place) for action, place in on_glue if place not in of_glue} <= here
    assert {action for action, _ in here - on_glue} == {
        "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents", "logs:DescribeLogGroups",
    }  # fmt: skip


def test_one_run_at_a_time() -> None:
    """The application runs one job, is of Spark 4, and stops by itself, whatever the control plane does."""
    template = load_template(TEMPLATE)
    parameters = {name: about.get("Default", "x") for name, about in template["Parameters"].items()}
    parameters |= {"Runtime": "emr"}
    resolver = Resolver(template, {**pseudo_parameters("eu-central-1", "123456789012"), **parameters})
    application = resolver.value(template["Resources"]["Application"])["Properties"]
    assert application["SchedulerConfiguration"]["MaxConcurrentRuns"] == 1
    assert (application["Type"], application["ReleaseLabel"]) == ("Spark", "emr-spark-8.0.0")
    assert application["AutoStopConfiguration"]["Enabled"]


def test_a_task() -> None:
    """It is the image's user without rights, writes to scratch alone, and its log is that of the role of the agent."""
    template = load_template(TEMPLATE)
    parameters = {name: about.get("Default", "x") for name, about in template["Parameters"].items()}
    parameters |= {**FOR_ECS, "Runtime": "ecs"}
    resolver = Resolver(template, {**pseudo_parameters("eu-central-1", "123456789012"), **parameters})
    task = resolver.value(template["Resources"]["TaskDefinition"])["Properties"]
    [container] = task["ContainerDefinitions"]
    assert f"USER {container['User']}" in (ROOT / "Dockerfile").read_text()
    image = f"123456789012.dkr.ecr.eu-central-1.AWS::URLSuffix/ndjson-compactor@{FOR_ECS['ImageDigest']}"
    assert (container["Name"], container["Image"]) == (ecs_job.CONTAINER, image)
    assert (container["ReadonlyRootFilesystem"], container["LinuxParameters"]["Capabilities"]["Drop"]) == (
        True,
        ["ALL"],
    )
    assert [each["ContainerPath"] for each in container["MountPoints"]] == [str(Path(ecs_job.HEALTH_FILE).parent)]
    assert f"find {ecs_job.HEALTH_FILE} " in container["HealthCheck"]["Command"][1]
    agent = resolver.value(template["Resources"]["ExecutionRole"])["Properties"]["Policies"][0]["PolicyDocument"]
    [pull] = [each for each in agent["Statement"] if each["Sid"] == "PullImage"]
    assert pull["Resource"] == "arn:aws:ecr:eu-central-1:123456789012:repository/ndjson-compactor"
    assert resolver.holds("OnEcs")
    assert not resolver.holds("OnEmr")


def test_the_target_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control plane of the function runs the job where the settings say."""
    monkeypatch.setenv("COMPACTOR_CONFIG", "s3://bucket/c.toml")
    document = {
        "paths": {name: f"s3://bucket/{name}" for name in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": ["s3://raw-bucket/"]},
        "convert": {"engine": "native"},
        "aws": {"region": "eu-central-1"},
    }
    assert type(job_runs(App(parse_settings(document)))).__name__ == "GlueJob"
    given = {
        "application_id": OUTPUTS["ApplicationId"],
        "role_arn": OUTPUTS["RoleArn"],
        "entry_point": "s3://bucket/e.py",
        "archive": "s3://bucket/a.tar.gz",
    }
    wanted = {**document, "emr": given}
    assert isinstance(job_runs(App(parse_settings(wanted))), emr_job.EmrJob)
    assert [policy_of(parse_settings(each)).service for each in (document, wanted)] == ["Glue", "EMR Serverless"]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel of the package with a native engine."""
    path = tmp_path / "ndjson_compactor-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as own:
        own.writestr("compactor/__init__.py", "WHERE = __file__\n")
        own.writestr("compactor_native/native.abi3.so", "compiled")
        own.writestr("ndjson_compactor-0.1.0.dist-info/RECORD", "")
    return path


def install(site: Path) -> None:
    """Packages as pip leaves them."""
    (site / "orjson").mkdir()
    (site / "orjson" / "__init__.py").write_text("FROM_ARCHIVE = True\n")
    (site / "bin").mkdir()
    (site / "bin" / "tool").write_text("")
    (site / "orjson" / "__pycache__").mkdir()
    (site / "orjson" / "__pycache__" / "x.pyc").write_bytes(b"")


def test_the_archive_starts_emrs_python_with_the_packages(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacked anywhere, its `bin/python` finds the packages; it holds no interpreter, and is the same each time."""
    first, second = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    build_archive(first, wheel, install)
    build_archive(second, wheel, install)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        assert sorted(tar.getnames()) == [
            "bin/python",
            "site/compactor/__init__.py",
            "site/compactor_native/native.abi3.so",
            "site/orjson/__init__.py",
        ]
        unpack(tar, tmp_path / "environment")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / f"python{EMR_PYTHON}").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (programs / f"python{EMR_PYTHON}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", "/from/spark")
    script = "import compactor, orjson, sys; print(compactor.WHERE, orjson.FROM_ARCHIVE, '/from/spark' in sys.path)"
    command = ["./environment/bin/python", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "environment/site/compactor/__init__.py"), "True", "True"]


def test_an_archive_needs_the_native_engine(tmp_path: Path) -> None:
    """Spark 4.0 does not keep what Spark 4.1 keeps, so the job never converts by Spark there."""
    pure = tmp_path / "ndjson_compactor-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(pure, "w") as own:
        own.writestr("compactor/__init__.py", "")
    with pytest.raises(PackagingError, match="no native engine"):
        build_archive(tmp_path / "a.tar.gz", pure, install)
    assert not (tmp_path / "a.tar.gz").exists()

"""The job as a long-lived service: units of systemd and resources of Kubernetes that start what is there, confined."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from compactor.cli.ui.supervisor import REPORT_SECONDS
from compactor.settings.settings import parse_settings
from compactor.wiring.engine_choice import needs_spark
from tests.deployment.resolving import ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
PROGRAM = "/opt/compactor/bin/compactor"
USER = 10001
SCRATCH = "/tmp"  # noqa: S108 - in the container

FIELDS = {
    "Deployment": {"replicas", "selector", "template"},
    "PodDisruptionBudget": {"maxUnavailable", "selector"},
    "CronJob": {
        "schedule", "concurrencyPolicy", "startingDeadlineSeconds", "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit", "jobTemplate",
    },
    "pod": {
        "automountServiceAccountToken", "terminationGracePeriodSeconds", "restartPolicy", "securityContext",
        "containers", "volumes",
    },
    "container": {"name", "image", "args", "envFrom", "resources", "livenessProbe", "securityContext", "volumeMounts"},
}  # fmt: skip
"""Of the specifications of these kinds, `PodSpec` and `Container` [Kubernetes API 1.37]."""


class Unit(RawConfigParser):
    """One unit file. Of keys that are there several times, it keeps the last one."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False)
        self.read(path)

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def starts(words: list[str]) -> bool:
    """Whether the program knows this command with these options."""
    return CliRunner().invoke(command, [*words, "--help"]).exit_code == 0


@pytest.mark.parametrize("path", UNITS, ids=lambda path: str(path.name))
def test_systemd_knows_each_key(path: Path, tmp_path: Path) -> None:
    """Its own check has nothing to say, once there is a program."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze")
    for each in UNITS:
        (tmp_path / each.name).write_text(each.read_text().replace(PROGRAM, sys.executable))
    done = subprocess.run([program, "verify", tmp_path / path.name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_of_systemd() -> None:
    """It waits for the job's reports, long enough for them, starts it again, and gives it no rights."""
    service = Unit(ROOT / "deploy" / "systemd" / "compactor.service")["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert (program, service["Type"], service["Restart"], service["DynamicUser"]) == (
        PROGRAM,
        "notify",
        "always",
        "yes",
    )
    assert starts(words)
    assert int(service["WatchdogSec"].removesuffix("min")) * 60 >= 20 * REPORT_SECONDS
    assert (service["ProtectSystem"], service["CapabilityBoundingSet"]) == ("strict", "")


def test_the_plan_of_systemd() -> None:
    """The timer starts the plan, as the user whose state the service has, one at a time."""
    of_job, of_plan = (
        Unit(ROOT / "deploy" / "systemd" / f"compactor{name}.service")["Service"] for name in ("", "-plan")
    )
    assert starts(shlex.split(of_plan["ExecStart"])[1:])
    assert of_plan["Type"] == "oneshot"
    for key in ("User", "DynamicUser", "StateDirectory", "StateDirectoryMode", "UMask"):
        assert of_plan[key] == of_job[key], key
    assert "OnUnitInactiveSec" in Unit(ROOT / "deploy" / "systemd" / "compactor-plan.timer")["Timer"]


def resources() -> dict[str, dict[str, Any]]:
    """The resources of Kubernetes, by kind."""
    text = (ROOT / "deploy" / "kubernetes.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def pods() -> list[dict[str, Any]]:
    """The pods of the job and of the plan."""
    found = resources()
    return [
        found["Deployment"]["spec"]["template"]["spec"],
        found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    ]


def test_the_resources_of_kubernetes() -> None:
    """Fields that its API knows, one set of labels, and a budget that lets a node be drained."""
    found = resources()
    assert found.keys() == {"ConfigMap", "Deployment", "PodDisruptionBudget", "CronJob"}
    for kind in ("Deployment", "PodDisruptionBudget", "CronJob"):
        assert found[kind]["spec"].keys() <= FIELDS[kind], kind
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert found[kind]["spec"]["selector"]["matchLabels"] == labels, kind
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == found["Deployment"]["spec"]["replicas"]
    assert found["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"


@pytest.mark.parametrize("pod", pods(), ids=["job", "plan"])
def test_a_pod_is_confined_and_starts(pod: dict[str, Any]) -> None:
    """It is the image's user without rights, writes to scratch alone, and has words that the program knows."""
    assert pod.keys() <= FIELDS["pod"]
    [container] = pod["containers"]
    assert container.keys() <= FIELDS["container"]
    assert starts(container["args"])
    assert f"USER {USER}:{USER}" in (ROOT / "Dockerfile").read_text()
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, USER)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert {each["name"] for each in pod["volumes"]} == mounted.keys()
    assert mounted["scratch"] == SCRATCH


def test_the_probe_looks_at_what_the_job_touches() -> None:
    """Its age may be that of many reports."""
    [container] = pods()[0]["containers"]
    health = container["args"][container["args"].index("--health-file") + 1]
    [_, _, look] = container["livenessProbe"]["exec"]["command"]
    minutes = re.search(rf"find {health} -mmin -(\d+) ", look)
    assert minutes
    assert int(minutes[1]) * 60 >= 20 * REPORT_SECONDS


def test_the_settings_on_kubernetes() -> None:
    """They are valid once what is marked is set, and need neither Spark nor AWS's own services."""
    text = re.sub(r"<(https://)?([a-z]+)[^>]*>", r"\1\2-of-ours", resources()["ConfigMap"]["data"]["compactor.toml"])
    settings = parse_settings(tomllib.loads(text))
    settings.require_claims()
    assert settings.stream.source == "listing"
    assert settings.aws.endpoint_url
    assert not needs_spark(settings)

"""Promises of `compactor doctor`: each fault is one line with its next action, and nothing else is reported."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from click.testing import CliRunner

from compactor.adapters import this_machine
from compactor.cli.entry import compactor as command
from compactor.ops.doctor.findings import Finding
from compactor.ops.doctor.machine_checks import Disk
from tests.contract.doctor.workspace import (
    ANSWER,
    Workspace,
    install_java,
    only_fault,
)
from tests.support.aws_stand_in import REGION


def test_nothing_is_wrong(workspace: Workspace) -> None:
    """Where nothing is wrong, every check is made and is ok, and no object is left behind."""
    before = workspace.objects()
    found = workspace.findings()
    assert {each.state for each in found} == {"ok"}, found
    assert [each.name for each in found] == [
        *(
            "settings",
            "java",
            "spark",
            "s3a",
            "native",
            "disk",
            "region",
            "endpoint",
            "clock",
            "credentials",
        ),
        *(f"bucket {workspace.name}-{each}" for each in ("own", "lake", "raw")),
        *("input", "manifests", "output", "state"),
        *("claims", "queue", "dead letters", "topic", "glue job", "metrics"),
    ]
    assert workspace.objects() == before


def test_no_java(workspace: Workspace) -> None:
    """Without Java the fault says where it was searched, and what to install."""
    (workspace.folder / "empty").mkdir()
    workspace.env.update(PATH=str(workspace.folder / "empty"), COMPACTOR_STREAM__SOURCE="spark")
    found = workspace.fault()
    assert (found.name, found.found) == ("java", "Java 17 or 21 is needed: no `java` on the PATH and no JAVA_HOME")
    assert found.next_move.startswith("install Java 17")


def test_wrong_java(workspace: Workspace) -> None:
    """For a Java that Spark does not run on, the fault names its version and its path."""
    install_java(workspace.folder / "bin", ANSWER.format("11.0.2"))
    found = workspace.fault()
    assert found.name == "java"
    assert f"found Java 11, expected 17 or 21 ({workspace.folder}/bin/java)" in found.found
    assert "JAVA_HOME" in found.next_move


def test_missing_bucket(workspace: Workspace) -> None:
    """For a missing bucket, the fault names the bucket and its setting; the place in it is not tried."""
    places = f'manifests = "s3://{workspace.name}-own/manifests"\nstate = "s3://{workspace.name}-own/state"'
    workspace.write(paths=f'{places}\noutput = "s3://{workspace.name}-no/events"')
    findings = workspace.findings()
    found = only_fault(findings)
    assert (found.name, found.found) == (f"bucket {workspace.name}-no", "does not exist")
    make = f"aws s3 mb s3://{workspace.name}-no --region {REGION}"
    assert found.next_move == f"create it ({make}), or correct paths.output"
    skipped = [each for each in findings if each.state == "skipped"]
    assert [(each.name, each.found) for each in skipped] == [("output", f"fix bucket {workspace.name}-no first")]


def test_denied_prefix(workspace: Workspace, denied: Callable[..., None]) -> None:
    """For a prefix that is write-protected, the fault names what is refused and the missing permission."""
    denied(["s3:PutObject"], f"arn:aws:s3:::{workspace.name}-own/state/*")
    found = workspace.fault()
    assert found.name == "state"
    assert found.found == (
        f"s3://{workspace.name}-own/state: cannot write: PutObject failed with AccessDenied: Access Denied "
        "(not tried: read, create-only write, delete)"
    )
    assert f"allow s3:PutObject on arn:aws:s3:::{workspace.name}-own/state/*" in found.next_move


def test_input_that_may_not_be_read(workspace: Workspace, denied: Callable[..., None]) -> None:
    """Input that can be listed but not read is a fault."""
    denied(["s3:GetObject"], f"arn:aws:s3:::{workspace.name}-raw/*")
    found = workspace.fault()
    assert found.name == "input"
    assert "cannot read: GetObject failed with AccessDenied" in found.found
    assert f"allow s3:GetObject on arn:aws:s3:::{workspace.name}-raw/*" in found.next_move


def test_unknown_setting_and_wrong_type(workspace: Workspace) -> None:
    """All faults of the settings are reported at once, each with what was expected or meant."""
    workspace.write(stream='max_atempts = 3\nmanifests_in_flight = "two"', outptu="")
    place = f"{workspace.config}: "
    faults = [
        (each.found.removeprefix(place), each.next_move) for each in workspace.findings() if each.state == "fault"
    ]
    moves = dict(faults)
    assert moves["stream.max_atempts: unknown key"].startswith("did you mean max_attempts? It is one of manifests_in")
    assert moves["outptu: unknown section"].startswith("did you mean output? It is one of aws, builder")
    assert moves['stream.manifests_in_flight: "two"'] == "expected a whole number"
    assert len(faults) == 3


def test_full_disk(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a full disk, the fault says how much is free and needed, and what to do."""
    monkeypatch.setattr(this_machine, "disk_of", lambda _: Disk("1", 400 * 1024**2))
    found = workspace.fault()
    assert found.name == "disk"
    assert found.found.startswith("0.4 GiB free, 2.0 GiB needed: ")
    assert "stream.manifests_in_flight x builder.target_manifest_bytes" in found.next_move


def test_settings_in_s3(workspace: Workspace) -> None:
    """Settings may be in S3; a job that reads others is a warning."""
    s3 = workspace.client("s3")
    s3.put_object(Bucket=f"{workspace.name}-own", Key="settings.toml", Body=workspace.config.read_bytes())
    place = f"s3://{workspace.name}-own/settings.toml"
    env = {**workspace.env, "COMPACTOR_AWS__ENDPOINT_URL": workspace.endpoint, "COMPACTOR_AWS__REGION": REGION}
    result = CliRunner().invoke(command, ["--config", place, "doctor", "--elsewhere"], env=env)
    assert result.exit_code == 0, result.stdout
    assert "-> check those: --config s3://settings/prod.toml" in result.stdout
    missing = CliRunner().invoke(command, ["--config", f"{place}.no", "doctor", "--elsewhere"], env=env)
    assert missing.exit_code == 2
    assert "no such object" in missing.stdout


def test_leaving_this_machine_out(workspace: Workspace) -> None:
    """Where the job runs elsewhere, this machine's Java and disks are not checked."""
    workspace.env["PATH"] = str(workspace.folder)
    result = workspace.call("--elsewhere")
    assert result.exit_code == 0, result.stdout
    assert "java" not in result.stdout
    assert result.stdout.endswith("No faults.\n")


def test_finding_is_what_json_says(workspace: Workspace) -> None:
    """The shape of --json."""
    document = json.loads(workspace.call("--json").stdout)
    assert sorted(document) == ["faults", "findings", "warnings"]
    assert {tuple(sorted(each)) for each in document["findings"]} == {("found", "name", "next_move", "state", "stream")}
    assert replace(Finding(**document["findings"][0]), found="") == Finding("settings", "ok", "")

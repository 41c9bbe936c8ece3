"""Everything that settings can name, in a local AWS, and what the doctor finds there."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from compactor.adapters.aws.clients import aws_client
from compactor.cli.entry import compactor as command
from compactor.ops.doctor.findings import Finding
from compactor.settings.settings import load_settings
from compactor.wiring.doctor import examine
from tests.support.aws_stand_in import REGION

ACCOUNT = "123456789012"


ANSWER = 'openjdk version "{}" 2025-04-15'


@cache
def client_of(service: str, endpoint: str) -> Any:
    """Clients are slow to make, and each test needs many."""
    return aws_client(service, REGION, endpoint)


@dataclass(frozen=True)
class Workspace:
    """Everything that settings can name, in a local AWS, and the environment of an operator."""

    endpoint: str
    folder: Path
    name: str
    env: dict[str, str | None]

    @property
    def config(self) -> Path:
        return self.folder / "settings.toml"

    def client(self, service: str) -> Any:
        return client_of(service, self.endpoint)

    def write(self, **changes: str) -> None:
        """Write the settings, with the lines of some sections changed."""
        name, queues = self.name, f"{self.endpoint}/{ACCOUNT}/{self.name}"
        sections = {
            "paths": f'manifests = "s3://{name}-own/manifests"\noutput = "s3://{name}-lake/events"\n'
            f'state = "s3://{name}-own/state"',
            "input": f'allowed_prefixes = ["s3://{name}-raw"]',
            "builder": f'claims = "{name}"',
            "control": f'job_name = "{name}"\nqueue_url = "{queues}-events"\n'
            f'dead_letter_queue_url = "{queues}-dead"\ntopic_arn = "arn:aws:sns:{REGION}:{ACCOUNT}:{name}"',
            "aws": f'region = "{REGION}"\nendpoint_url = "{self.endpoint}"',
            "metrics": 'sink = "cloudwatch"',
            **changes,
        }
        self.config.write_text("\n".join(f"[{section}]\n{lines}" for section, lines in sections.items()))

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), "doctor", *arguments], env=self.env)

    def findings(self) -> list[Finding]:
        """What the command finds; its exit code agrees."""
        result = self.call("--json")
        document = json.loads(result.stdout)
        found = [Finding(**each) for each in document["findings"]]
        assert document["faults"] == sum(each.state == "fault" for each in found)
        assert result.exit_code == (2 if document["faults"] else 0)
        return found

    def fault(self) -> Finding:
        """The only fault."""
        return only_fault(self.findings())

    def objects(self) -> list[str]:
        s3 = self.client("s3")
        buckets = [f"{self.name}-{each}" for each in ("own", "lake", "raw")]
        return [item["Key"] for each in buckets for item in s3.list_objects_v2(Bucket=each).get("Contents", ())]


def install_java(folder: Path, answer: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    (folder / "java").chmod(0o755)


def make_table(workspace: Workspace, name: str, key: str = "pk") -> None:
    workspace.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def make_job(
    workspace: Workspace, name: str = "", *, runs: int = 1, retries: int = 0, kind: str = "gluestreaming"
) -> None:
    workspace.client("glue").create_job(
        Name=name or workspace.name,
        Role="role",
        Command={"Name": kind},
        ExecutionProperty={"MaxConcurrentRuns": runs},
        MaxRetries=retries,
        DefaultArguments={"--CONFIG": "s3://settings/prod.toml"},
    )


def examined(workspace: Workspace, clock: Any = None) -> list[Finding]:
    """What the doctor finds in this process, and by this clock."""
    return list(examine(load_settings(workspace.config, {}), str(workspace.config), clock=clock))


def only_fault(findings: list[Finding]) -> Finding:
    faults = [each for each in findings if each.state == "fault"]
    assert len(faults) == 1, faults
    assert faults[0].next_move
    return faults[0]

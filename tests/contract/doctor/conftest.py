"""Fixtures of the tests of the doctor: a healthy workspace, and permissions to deny in it."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from moto import settings as moto_settings

from tests.contract.doctor.workspace import (
    ANSWER,
    Workspace,
    install_java,
    make_job,
    make_table,
)
from tests.support.aws_stand_in import REGION


@pytest.fixture
def workspace(aws_endpoint: str, tmp_path: Path) -> Workspace:
    """A healthy set-up."""
    name = f"workspace-{uuid.uuid4().hex[:12]}"
    install_java(tmp_path / "bin", ANSWER.format("17.0.15"))
    env: dict[str, str | None] = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "JAVA_HOME": None,
        "COMPACTOR_CONFIG": None,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    made = Workspace(aws_endpoint, tmp_path, name, env)
    buckets = [f"{name}-{each}" for each in ("own", "lake", "raw")]
    for each in buckets:
        made.client("s3").create_bucket(Bucket=each, CreateBucketConfiguration={"LocationConstraint": REGION})
    made.client("s3").put_object(Bucket=f"{name}-raw", Key="a.ndjson", Body=b"{}\n")
    make_table(made, name)
    ttl = {"Enabled": True, "AttributeName": "expires_at"}
    made.client("dynamodb").update_time_to_live(TableName=name, TimeToLiveSpecification=ttl)
    for queue in ("events", "dead"):
        made.client("sqs").create_queue(QueueName=f"{name}-{queue}")
    made.client("sns").create_topic(Name=name)
    make_job(made)
    made.write()
    return made


@pytest.fixture
def denied(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Denies the operator some actions on some resources, by a policy that the local AWS enforces."""

    def deny(actions: list[str], resource: str) -> None:
        iam = workspace.client("iam")
        iam.create_user(UserName=workspace.name)
        policy = [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": actions, "Resource": resource},
        ]
        document = json.dumps({"Version": "2012-10-17", "Statement": policy})
        iam.put_user_policy(UserName=workspace.name, PolicyName="operator", PolicyDocument=document)
        key = iam.create_access_key(UserName=workspace.name)["AccessKey"]
        workspace.env.update(AWS_ACCESS_KEY_ID=key["AccessKeyId"], AWS_SECRET_ACCESS_KEY=key["SecretAccessKey"])
        monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)

    return deny

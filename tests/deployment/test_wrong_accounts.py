"""Accounts that are not ready: each is found wrong, by name, before anything is created."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from botocore.exceptions import ClientError

from compactor.core.errors import SettingsError
from deploy.__main__ import deploy
from deploy.preflight import Preflight
from tests.deployment.accounts import ZONE, Parameters, Prepare, key, network
from tests.deployment.resolving import PSEUDO, parameters_of, template
from tests.deployment.test_deploying import BUCKET, POLICY, REGION, Quotas, change, kinds, root, session

__all__ = ["root", "session"]  # fixtures

ELSEWHERE = "eu-west-1"


def _bucket(name: str, region: str = REGION) -> Prepare:
    def prepare(session: Any) -> Parameters:
        where = {"LocationConstraint": region}
        session.client("s3", region_name=region).create_bucket(Bucket=name, CreateBucketConfiguration=where)
        return {"InputBucketIsNew": "no"} if "raw" in name else {}

    return prepare


def _no_artefacts(session: Any) -> Parameters:
    session.client("s3").delete_bucket(Bucket=BUCKET)
    return {}


def _artefacts_elsewhere(session: Any) -> Parameters:
    _bucket("example-artefacts-far", ELSEWHERE)(session)
    return {"ArtefactBucketName": "example-artefacts-far"}


def _given(**parameters: str) -> Prepare:
    return lambda _: parameters


def _made(service: str, call: str, **arguments: Any) -> Prepare:
    def prepare(session: Any) -> Parameters:
        getattr(session.client(service), call)(**arguments)
        return {}

    return prepare


NO_KEY = f"arn:aws:kms:{REGION}:123456789012:key/11111111-2222-3333-4444-555555555555"
TRUST = "{}"

FAULTS: list[tuple[str, Prepare, str]] = [
    ("no bucket for artefacts", _no_artefacts, f"bucket {BUCKET} does not exist"),
    ("artefacts in another region", _artefacts_elsewhere, f"is in {ELSEWHERE}, expected {REGION}"),
    ("no input bucket", _given(InputBucketIsNew="no"), "bucket example-raw-dev does not exist"),
    ("input in another region", _bucket("example-raw-dev", ELSEWHERE), f"example-raw-dev is in {ELSEWHERE}"),
    ("the bucket of the state is taken", _bucket("example-compactor-dev"), "example-compactor-dev exists"),
    ("the bucket of staging is taken", _bucket("example-staging-dev"), "example-staging-dev exists"),
    ("a queue is taken", _made("sqs", "create_queue", QueueName="compactor-dev-events"), "compactor-dev-events exists"),
    (
        "a role is taken",
        _made("iam", "create_role", RoleName="compactor-dev-job", AssumeRolePolicyDocument=TRUST),
        "compactor-dev-job exists",
    ),
    (
        "a policy is taken",
        _made("iam", "create_policy", PolicyName="compactor-dev-operator", PolicyDocument=POLICY),
        "compactor-dev-operator exists",
    ),
    (
        "a database is taken",
        _made("glue", "create_database", DatabaseInput={"Name": "compactor_dev"}),
        "compactor_dev exists",
    ),
    (
        "a log group is left",
        _made("logs", "create_log_group", logGroupName="/aws/lambda/compactor-dev-control-plane"),
        "/aws/lambda/compactor-dev-control-plane exists",
    ),
    ("the key does not exist", _given(KmsKey=NO_KEY), f"KmsKey: no key {NO_KEY}"),
    ("the key is of another region", _given(KmsKey=NO_KEY.replace(REGION, ELSEWHERE)), f"is not of {REGION}"),
    ("the key is disabled", key("disabled"), "is Disabled, expected Enabled"),
    ("the key is about to be deleted", key("deleted"), "is PendingDeletion, expected Enabled"),
    (
        "the boundary does not exist",
        _given(PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"),
        "PermissionsBoundary: no policy",
    ),
    (
        "the subnet does not exist",
        _given(JobSubnet="subnet-0123456789abcdef0", JobSubnetZone=ZONE, JobSecurityGroup="sg-0123456789abcdef0"),
        "JobSubnet: no subnet subnet-0123456789abcdef0",
    ),
    ("the subnet is in another zone", network(zone=f"{REGION}b"), f"is in {ZONE}, not in {REGION}b"),
    ("the group is of another network", network(same_vpc=False), "JobSecurityGroup: sg-"),
    ("the group keeps workers apart", network(itself=False), "allows no traffic from itself"),
]


@pytest.mark.parametrize(("prepare", "words"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_faults(session: Any, root: Path, prepare: Prepare, words: str) -> None:
    """The deployment stops, names what is wrong, and has uploaded and created nothing."""
    change(root, **prepare(session))
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root)
    assert [fault for fault in caught.value.faults if words in fault], caught.value.faults
    if words != f"bucket {BUCKET} does not exist":
        assert kinds(session) == set()
    stacks = session.client("cloudformation").list_stacks()["StackSummaries"]
    assert [each for each in stacks if each["StackStatus"] != "REVIEW_IN_PROGRESS"] == []


def _checks(client: Callable[[str], Any], session: Any = None, **parameters: str) -> Preflight:
    return Preflight(
        session=session,
        client=client,
        account=str(PSEUDO["AWS::AccountId"]),
        template=template(),
        parameters={**parameters_of("dev"), **parameters},
        files=(),
        is_new=True,
    )


class Refusing:
    """A service that is not allowed, as under a service control policy."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def refused(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "an explicit deny"}}, name)

        return refused


class LakeFormation:
    """Lake Formation that decides about new tables."""

    def get_data_lake_settings(self) -> Any:
        return {"DataLakeSettings": json.loads("{}")}


WARNINGS: list[tuple[str, str, Callable[[str], Any], str]] = [
    ("Lake Formation decides", "Lake Formation", lambda _: LakeFormation(), "needs CREATE_DATABASE"),
    ("alarms reach no one", "alarms", lambda _: Refusing(), "no one receives alarms"),
    ("few executions at once", "Lambda quota", lambda _: Quotas(3, 300), "lower BuilderConcurrency"),
    ("few workers", "Glue quota", lambda _: Quotas(1000, 2), "lower MaxWorkers, or have the quota raised"),
    ("no right to ask for quotas", "Lambda quota", lambda _: Refusing(), "not checked: "),
]


@pytest.mark.parametrize(("name", "client", "words"), [row[1:] for row in WARNINGS], ids=[row[0] for row in WARNINGS])
def test_answers_of_other_services(session: Any, name: str, client: Callable[[str], Any], words: str) -> None:
    """What the stand-in does not answer as these accounts would is answered here."""
    found = list(_checks(client, session).results(only=[name]))
    assert any(words in each.found for each in found), found


def test_a_network_without_a_way_to_s3(session: Any) -> None:
    """It is a warning, for a NAT gateway does as well."""
    found = list(_checks(session.client, session, **network()(session)).results(only=["parameters"]))
    assert [each.state for each in found] == ["warning", "ok"]
    assert "has no endpoint for S3" in found[0].found

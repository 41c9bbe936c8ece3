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
from tests.deployment.test_deploying import BUCKET, REGION, Quotas, change, kinds, root, session

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


NO_KEY = f"arn:aws:kms:{REGION}:123456789012:key/11111111-2222-3333-4444-555555555555"
NO_SUBNET = {
    "JobSubnet": "subnet-0123456789abcdef0",
    "JobSubnetZone": ZONE,
    "JobSecurityGroup": "sg-0123456789abcdef0",
}

ACCOUNTS: dict[str, list[tuple[Prepare, str]]] = {
    "no bucket for artefacts": [(_no_artefacts, f"bucket {BUCKET} does not exist")],
    "nothing else is there": [
        (_given(InputBucketIsNew="no"), "bucket example-raw-dev does not exist"),
        (_given(KmsKey=NO_KEY), f"KmsKey: no key {NO_KEY}"),
        (_given(PermissionsBoundary="arn:aws:iam::123456789012:policy/boundary"), "PermissionsBoundary: no policy"),
        (_given(**NO_SUBNET), "JobSubnet: no subnet subnet-0123456789abcdef0"),
        (_given(), "JobSecurityGroup: no security group sg-0123456789abcdef0"),
    ],
    "all is elsewhere": [
        (_artefacts_elsewhere, f"example-artefacts-far is in {ELSEWHERE}"),
        (_bucket("example-raw-dev", ELSEWHERE), f"example-raw-dev is in {ELSEWHERE}"),
        (_given(KmsKey=NO_KEY.replace(REGION, ELSEWHERE)), f"is not of {REGION}"),
        (network(zone=f"{REGION}b"), f"is in {ZONE}, not in {REGION}b"),
    ],
    "the key is disabled": [
        (_bucket("example-compactor-dev"), "example-compactor-dev exists"),
        (key("disabled"), "is Disabled, expected Enabled"),
        (network(same_vpc=False), "JobSecurityGroup: sg-"),
    ],
    "the key is about to be deleted": [
        (_bucket("example-staging-dev"), "example-staging-dev exists"),
        (key("deleted"), "is PendingDeletion, expected Enabled"),
        (network(itself=False), "allows no traffic from itself"),
    ],
}
"""Of each account, what it has, and how the fault of that is named. `test_names_that_are_taken` has all other names."""


@pytest.mark.parametrize("account", ACCOUNTS)
def test_faults(session: Any, root: Path, account: str) -> None:
    """The deployment stops, names all that is wrong, and has uploaded and created nothing."""
    for prepare, _ in ACCOUNTS[account]:
        change(root, **prepare(session))
    with pytest.raises(SettingsError) as caught:
        deploy("dev", Session, confirm=lambda: True, root=root)
    for _, words in ACCOUNTS[account]:
        assert len([fault for fault in caught.value.faults if words in fault]) == 1, (words, caught.value.faults)
    assert len(caught.value.faults) == len(ACCOUNTS[account])
    if account != "no bucket for artefacts":
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

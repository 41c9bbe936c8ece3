"""Every implementation of a port, each in a place of its own, for the suites to run against."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.clients import dynamodb_client, s3_client
from compactor.adapters.aws.dynamo_claims import DynamoClaims
from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.claims import JournalClaims, StreamClaims
from compactor.adapters.local.sqlite.claims import SqliteClaims
from compactor.adapters.local.store import LocalStore
from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ClaimTable, ObjectStore
from tests.support.aws_stand_in import REGION
from tests.support.memory_store import MemoryClaims, MemoryStore


@dataclass(frozen=True)
class Place:
    """A store and a folder in it that no other test uses; the folder ends with `/`."""

    store: ObjectStore
    root: str


@pytest.fixture(scope="session")
def s3(aws_endpoint: str) -> Any:
    return s3_client(REGION, aws_endpoint)


@pytest.fixture(scope="session")
def dynamodb(aws_endpoint: str) -> Any:
    return dynamodb_client(REGION, aws_endpoint)


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    return name


@pytest.fixture
def table(dynamodb: Any) -> str:
    name = f"claims-{uuid.uuid4().hex}"
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


STORES = ["memory", "local", "s3", "routed-file", pytest.param("routed-s3a", marks=pytest.mark.full)]


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each store in turn; the one that routes is tried with the other spelling of each scheme."""
    kind: str = request.param
    if kind == "memory":
        return Place(MemoryStore(), "s3://memory/root/")
    if kind == "local":
        return Place(LocalStore(), f"{tmp_path}/root/")
    if kind == "routed-file":
        return Place(StoreSpec().open(), f"file://{tmp_path}/root/")
    bucket = request.getfixturevalue("bucket")
    if kind == "routed-s3a":
        spec = StoreSpec(REGION, request.getfixturevalue("aws_endpoint"))
        return Place(spec.open(), f"s3a://{bucket}/root/")
    return Place(S3Store(request.getfixturevalue("s3")), f"s3://{bucket}/root/")


@pytest.fixture(params=["memory", "sqlite", "dynamodb", "journal-memory", "journal-local", "journal-s3", "of-a-stream"])
def claims(request: pytest.FixtureRequest, tmp_path: Path) -> ClaimTable:
    """Each claim table in turn."""
    if request.param in {"memory", "of-a-stream"}:
        claims = MemoryClaims()
        return claims if request.param == "memory" else StreamClaims(claims, "orders")
    if request.param == "sqlite":
        return SqliteClaims(tmp_path / "made" / "as needed" / "claims.db")
    if request.param == "journal-memory":
        return JournalClaims(MemoryStore(), "s3://memory/claims/")
    if request.param == "journal-local":
        return JournalClaims(LocalStore(), f"{tmp_path}/made/as needed/")
    if request.param == "journal-s3":
        return JournalClaims(
            S3Store(request.getfixturevalue("s3")), f"s3://{request.getfixturevalue('bucket')}/claims/"
        )
    return DynamoClaims(client=request.getfixturevalue("dynamodb"), table=request.getfixturevalue("table"), ttl_days=30)

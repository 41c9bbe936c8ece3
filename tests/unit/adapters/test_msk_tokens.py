"""Tokens of IAM for clusters of MSK: what they say, where their region is from, and errors of credentials."""

import base64
import time
from urllib.parse import parse_qs, urlparse

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("aws_msk_iam_sasl_signer")

from boto3.session import Session
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, EndpointConnectionError

from compactor.adapters.aws import kafka_credentials
from compactor.adapters.kafka import properties
from compactor.adapters.kafka.properties import Tokens, client_properties, region_of
from compactor.core.errors import AccessError, CredentialsMissing, CredentialsRefused, SettingsError, StoreUnavailable

MSK = "b-1.main.abc.c2.kafka.eu-central-1.amazonaws.com:9098"


def test_a_token_is_a_signed_request() -> None:
    """To connect to a cluster of the region, with the credentials of the session, for a quarter of an hour."""
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret", "aws_session_token": "session"}
    session = Session(**keys)
    before = int(time.time())
    made, ends_at = kafka_credentials.token("eu-central-1", session)
    url = urlparse(base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)).decode())
    query = {key: value[0] for key, value in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, query["Action"]) == (
        "https", "kafka.eu-central-1.amazonaws.com", "kafka-cluster:Connect",
    )  # fmt: skip
    assert query["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert query["X-Amz-Credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert (query["X-Amz-Expires"], query["X-Amz-Security-Token"]) == ("900", "session")
    assert before + 900 <= ends_at <= time.time() + 901
    assert b"secret" not in base64.urlsafe_b64decode(made + "=" * (-len(made) % 4))


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person must act."""
    monkeypatch.setattr(Session, "get_credentials", lambda _: None)
    with pytest.raises(CredentialsMissing):
        kafka_credentials.token("eu-central-1", Session())


REFUSED = ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "AssumeRole")
ENDED = ClientError({"Error": {"Code": "ExpiredToken", "Message": "it is expired"}}, "AssumeRole")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (REFUSED, AccessError),
        (ENDED, CredentialsRefused),
        (EndpointConnectionError(endpoint_url="https://sts"), StoreUnavailable),
    ],
)
@pytest.mark.parametrize("place", ["get_credentials", "get_frozen_credentials"])
def test_errors_of_sts_are_those_of_the_port(
    error: Exception, expected: type[Exception], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role is assumed when its credentials are asked for, and again when they end."""

    def refused(_: object) -> None:
        raise error

    monkeypatch.setattr(Session if place == "get_credentials" else Credentials, place, refused)
    with pytest.raises(expected, match="MSK credentials"):
        kafka_credentials.token("eu-central-1", Session("A", "B"))


@pytest.mark.parametrize(
    ("servers", "variable", "region"),
    [
        (MSK, "us-east-1", "eu-central-1"),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "", "eu-west-1"),
        (f"broker.internal:9098,{MSK}", "", "eu-central-1"),
        ("broker.internal:9098", "us-east-1", "us-east-1"),
    ],
)
def test_regions(servers: str, variable: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the names of brokers, else by the environment."""
    monkeypatch.setenv("AWS_REGION", variable)
    assert region_of("main", {"bootstrap.servers": servers}) == region


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not guessed."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match="expected MSK names"):
        region_of("main", {"bootstrap.servers": "broker.internal:9098"})


def test_the_properties_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism of librdkafka, with what makes tokens; the first one is made at once."""
    asked = list[str]()

    def made(region: str) -> tuple[str, float]:
        asked.append(region)
        return f"token {len(asked)}", 1.0

    monkeypatch.setattr(properties, "token_of_iam", made)
    given = {"bootstrap.servers": MSK, "sasl.mechanism": "AWS_MSK_IAM"}
    found = client_properties("main", given, given)
    assert (found["sasl.mechanism"], asked) == ("OAUTHBEARER", ["eu-central-1"])
    assert [found["oauth_cb"]("") for _ in range(2)] == [("token 1", 1.0), ("token 2", 1.0)]


def test_errors_of_credentials() -> None:
    """The first one is an error of the caller; later ones are of the connection, which the client repeats."""

    def refused(_region: str) -> tuple[str, float]:
        raise StoreUnavailable("no answer")

    with pytest.raises(StoreUnavailable):
        Tokens("eu-central-1", refused)
    answers = iter([("first", 1.0)])

    def once(region: str) -> tuple[str, float]:
        return next(answers, None) or refused(region)

    tokens = Tokens("eu-central-1", once)
    assert tokens("") == ("first", 1.0)
    with pytest.raises(RuntimeError, match="no answer"):
        tokens("")


def test_an_unexpected_error_ends_no_client() -> None:
    """It is one of the connection, too."""
    answers = iter([("first", 1.0)])
    tokens = Tokens("eu-central-1", lambda _: next(answers))
    assert tokens("") == ("first", 1.0)
    with pytest.raises(RuntimeError):
        tokens("")

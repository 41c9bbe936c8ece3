"""Properties of the clients of Kafka: secrets come from where settings say."""

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from boto3.session import Session
from moto import mock_aws

from compactor.adapters.aws import kafka_credentials
from compactor.adapters.kafka import properties
from compactor.adapters.kafka.broker_log import BrokerLog
from compactor.adapters.kafka.partition_consumer import Bounds, PartitionConsumer
from compactor.adapters.kafka.properties import CONSUMER, client_properties, resolved
from compactor.core.errors import AccessError, SettingsError, StoreUnavailable
from compactor.core.logs.names import LogName


def test_secrets_are_read_when_they_are_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the environment, or a file."""
    monkeypatch.setenv("SECRET", "s3cret")
    (tmp_path / "key").write_text("other\n")
    given = {"sasl.password": "env:SECRET", "ssl.key.password": f"file:{tmp_path}/key", "sasl.username": "me"}
    found = client_properties("main", given, resolved("main", given))
    assert found == {"sasl.password": "s3cret", "ssl.key.password": "other", "sasl.username": "me", "log_level": 2}


@pytest.mark.parametrize("reference", ["env:NO_SUCH_VARIABLE", "file:/no/such/file"])
def test_a_secret_that_is_not_there(reference: str) -> None:
    """The message names the reference."""
    with pytest.raises(SettingsError, match=r"kafka\.clusters\.main\.sasl\.password.*expected"):
        resolved("main", {"sasl.password": reference})


def test_promises_are_not_left_to_settings() -> None:
    """Nothing is committed, only decided records are read, and a removed offset is an error."""
    assert (CONSUMER["isolation.level"], CONSUMER["auto.offset.reset"]) == ("read_committed", "error")
    assert CONSUMER["enable.auto.commit"] is False


def ask(given: dict[str, str]) -> None:
    BrokerLog({"main": given}, request_seconds=1.0).describe(LogName("kafka", "main", "events"))


def read(given: dict[str, str]) -> None:
    topic = LogName("kafka", "main", "events")
    PartitionConsumer(topic, 0, Bounds(0, 1), given, lambda: pytest.fail("nothing is asked"))


@pytest.mark.parametrize("use", [ask, read])
@pytest.mark.parametrize(
    "more",
    [
        {"ssl.key.pem": "env:SECRET"},
        {"sasl.mechanism": "NONE-SUCH", "sasl.password": "env:SECRET"},
        {"ssl.no.such.property": "env:SECRET"},
        {"ssl.endpoint.identification.algorithm": "env:SECRET"},
    ],
    ids=["a key that is none", "an unknown mechanism", "an unknown property", "a value that is quoted"],
)
def test_properties_that_the_client_refuses(
    use: Callable[[dict[str, str]], None], more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is named; the words of the client, which may quote a secret, are not."""
    monkeypatch.setenv("SECRET", "s3cret-of-the-cluster")
    given = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_SSL", **more}
    with pytest.raises(SettingsError, match=r"kafka\.clusters\.main: .* expected names, values and files") as raised:
        use(given)
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_a_client_is_made_of_the_secrets_of_now(tmp_path: Path) -> None:
    """One that asks lives as long as the job, while secrets are rotated."""
    secret = tmp_path / "secret"
    secret.write_text("first")
    given = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    given |= {"sasl.username": "me", "sasl.password": f"file:{secret}"}
    log = BrokerLog({"main": given}, request_seconds=0.5)
    first = log._client("main")[1]
    assert log._client("main")[1] is first
    secret.write_text("second")
    assert log._client("main")[1] is not first


def test_a_client_that_failed_is_made_anew() -> None:
    """It may have failed for a secret that is kept, or is another one under the same reference."""
    log = BrokerLog({"main": {"bootstrap.servers": "127.0.0.1:1"}}, request_seconds=0.5)
    first = log._client("main")[1]
    with pytest.raises(StoreUnavailable):
        log.nodes("main")
    assert log._client("main")[1] is not first


def test_a_client_that_others_made_meanwhile_stays() -> None:
    """A request that fails gives up the client that it asked, not the one that other threads ask by now."""
    log = BrokerLog({"main": {"bootstrap.servers": "127.0.0.1:1"}}, request_seconds=0.5)
    newer = list[object]()

    def fail() -> None:
        with log._asking("main", "kafka://main") as asked:
            log._admins.clear()
            newer.append(log._client("main")[1])
            assert newer != [asked]
            raise StoreUnavailable("no answer")

    with pytest.raises(StoreUnavailable, match="no answer"):
        fail()
    assert newer == [log._client("main")[1]]


ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:kafka-AbCdEf"


def test_secrets_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text, or a key of an object; kept for a while, and asked for again where that may help."""
    monkeypatch.setattr(kafka_credentials, "_kept", {})
    asked, texts = list[str](), iter(['{"password": "first"}', '{"password": "second"}', "plain"])
    monkeypatch.setattr(kafka_credentials, "_asked", lambda arn, _: asked.append(arn) or next(texts))
    given = {"sasl.password": f"secretsmanager:{ARN}#password"}
    before = properties.resolved("main", given)
    assert before == {"sasl.password": "first"}
    assert properties.resolved("main", given) == before
    assert asked == [ARN]
    assert properties.has_changed("main", given, before)
    assert properties.resolved("main", given) == {"sasl.password": "second"}
    assert kafka_credentials.secret_of(ARN, is_fresh=True) == "plain"
    with pytest.raises(SettingsError, match='no text under "password" -> expected a JSON object'):
        properties.resolved("main", given)


@pytest.mark.parametrize(
    ("error", "may_be_another"), [(StoreUnavailable("no answer"), True), (AccessError("denied"), False)]
)
def test_a_secret_that_may_be_another_one(
    monkeypatch: pytest.MonkeyPatch, error: Exception, may_be_another: bool
) -> None:
    """While that cannot be told, a refusal is trouble that passes; without the right to read it, a person must act."""

    def fails(_arn: str, _session: object) -> str:
        raise error

    monkeypatch.setattr(kafka_credentials, "_kept", {})
    monkeypatch.setattr(kafka_credentials, "_asked", fails)
    given = {"sasl.password": f"secretsmanager:{ARN}"}
    assert properties.has_changed("main", given, {"sasl.password": "before"}) == may_be_another


def test_a_secret_that_was_known_outlives_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Secrets Manager, not of a person who asks whether it is another one by now."""

    def away(_arn: str, _session: object) -> str:
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(kafka_credentials, "_kept", {ARN: (0.0, "known")})
    monkeypatch.setattr(kafka_credentials, "_asked", away)
    assert kafka_credentials.secret_of(ARN) == "known"
    with pytest.raises(StoreUnavailable):
        kafka_credentials.secret_of(ARN, is_fresh=True)
    monkeypatch.setattr(kafka_credentials, "_kept", {})
    with pytest.raises(StoreUnavailable):
        kafka_credentials.secret_of(ARN)


def test_a_secret_of_aws_that_cannot_be_read() -> None:
    """The error is one of the port, and has the reference."""
    with mock_aws(), pytest.raises(AccessError, match=ARN):
        kafka_credentials.secret_of(ARN, is_fresh=True, session=Session("A", "B"))


def test_a_secret_that_is_there() -> None:
    """By its ARN, in its region."""
    with mock_aws():
        session = Session("A", "B")
        made = session.client("secretsmanager", "eu-west-1").create_secret(Name="kafka", SecretString="s3cret")
        assert kafka_credentials.secret_of(made["ARN"], session=session) == "s3cret"

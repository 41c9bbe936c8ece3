"""Properties of the clients of Kafka: secrets come from where settings say."""

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from compactor.adapters.kafka.broker_log import BrokerLog
from compactor.adapters.kafka.properties import admin_properties, consumer_properties
from compactor.adapters.kafka.range_consumer import RangeConsumer
from compactor.core.errors import SettingsError
from compactor.core.kafka.ranges import KafkaRange, Topic


def test_secrets_are_read_when_they_are_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the environment, or a file."""
    monkeypatch.setenv("SECRET", "s3cret")
    (tmp_path / "key").write_text("other\n")
    given = {"sasl.password": "env:SECRET", "ssl.key.password": f"file:{tmp_path}/key", "sasl.username": "me"}
    found = admin_properties("main", given)
    assert found == {"sasl.password": "s3cret", "ssl.key.password": "other", "sasl.username": "me", "log_level": 2}


@pytest.mark.parametrize("reference", ["env:NO_SUCH_VARIABLE", "file:/no/such/file"])
def test_a_secret_that_is_not_there(reference: str) -> None:
    """The message names the reference."""
    with pytest.raises(SettingsError, match=r"kafka\.clusters\.main\.sasl\.password.*expected"):
        admin_properties("main", {"sasl.password": reference})


def test_promises_are_not_left_to_settings() -> None:
    """Nothing is committed, only decided records are read, and a removed offset is an error."""
    found = consumer_properties("main", {"bootstrap.servers": "a", "isolation.level": "read_uncommitted"})
    assert (found["isolation.level"], found["auto.offset.reset"]) == ("read_committed", "error")
    assert found["enable.auto.commit"] is False


def ask(given: dict[str, str]) -> None:
    BrokerLog({"main": given}, request_seconds=1.0).topic(Topic("main", "events"))


def sample(given: dict[str, str]) -> None:
    BrokerLog({"main": given}, request_seconds=1.0).samples(Topic("main", "events"), {0: 0})


def read(given: dict[str, str]) -> None:
    RangeConsumer(KafkaRange(Topic("main", "events"), 0, 0, 1), given, lambda _: pytest.fail("nothing is asked"))


@pytest.mark.parametrize("use", [ask, sample, read])
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

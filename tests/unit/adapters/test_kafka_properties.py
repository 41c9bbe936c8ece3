"""Properties of the clients of Kafka: secrets come from where settings say."""

from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from compactor.adapters.kafka.properties import admin_properties, consumer_properties
from compactor.core.errors import SettingsError


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

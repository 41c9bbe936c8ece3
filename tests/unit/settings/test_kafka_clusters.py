"""Clusters of Kafka in the settings, and their secrets."""

from pathlib import Path
from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.core.logs.names import LogName
from compactor.settings.settings import parse_settings
from tests.support.settings_files import folder_settings

SERVERS = {"bootstrap.servers": "localhost:9092"}


def faults(prefixes: list[str], clusters: dict[str, Any]) -> str:
    """The faults of settings with these places of input and clusters; empty if there are none."""
    given = {"input": {"allowed_prefixes": prefixes}, "kafka": {"clusters": clusters}}
    try:
        parse_settings(folder_settings("/data", **given))
    except SettingsError as exc:
        return str(exc)
    return ""


def test_input_of_a_cluster() -> None:
    """Beside folders, or alone."""
    secured = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.username": "me", "sasl.password": "env:PASSWORD"}
    assert faults(["kafka://main/orders", "/raw"], {"main": secured}) == ""
    assert faults(["kafka://main"], {"main": SERVERS, "other": SERVERS}) == ""
    arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:AmazonMSK_compactor-AbCdEf"
    for reference in (f"secretsmanager:{arn}", f"secretsmanager:{arn}#password", "file:/run/secrets/password"):
        assert faults(["kafka://main"], {"main": {**secured, "sasl.password": reference}}) == ""


@pytest.mark.parametrize(
    ("prefix", "clusters", "expected"),
    [
        ("kafka://main/orders", {}, "a cluster of kafka.clusters"),
        ("kafka://main/orders", {"other": SERVERS}, "a cluster of kafka.clusters"),
        ("kafka://main/orders/0", {"main": SERVERS}, "kafka://cluster"),
        ("kafka://main/orders", {"main": {}}, "bootstrap.servers"),
        ("kafka://main/orders", {"Main": SERVERS}, "lower-case"),
        ("kafka://main/orders", {"main": "localhost:9092"}, "kafka.clusters"),
        ("kafka://main/orders", {"main": {**SERVERS, "isolation.level": "read_uncommitted"}}, "isolation.level"),
        ("kafka://main/orders", {"main": {**SERVERS, "group.id": "mine"}}, "group.id"),
        (
            "kafka://main/orders",
            {"main": {**SERVERS, "sasl.password": "secret"}},
            "env:NAME, file:/path or secretsmanager:ARN",
        ),
        ("kafka://main/orders", {"main": {**SERVERS, "sasl.password": "secretsmanager:kafka"}}, "secretsmanager:ARN"),
        (
            "kafka://main/orders",
            {"main": {**SERVERS, "ssl.key.passphrase": "secret"}},
            "env:NAME, file:/path or secretsmanager:ARN",
        ),
        (
            "kafka://main/orders",
            {"main": {**SERVERS, "sasl.oauthbearer.config": "s=t"}},
            "env:NAME, file:/path or secretsmanager:ARN",
        ),
        ("kafka://main/orders", {"main": {**SERVERS, "sasl.kerberos.kinit.cmd": "rm"}}, "run no code"),
    ],
)
def test_what_cannot_be_a_cluster(prefix: str, clusters: dict[str, Any], expected: str) -> None:
    """What a promise depends on is not set, and no secret is in a file of settings."""
    assert expected in faults([prefix], clusters)


@pytest.mark.parametrize(
    "document",
    [
        {"kafka": {"clusters": {"main": {**SERVERS, "sasl.password": "hunter2"}}}},
        {"kafka": {"clusters": {"main": {**SERVERS, "sasl.password": ["hunter2"]}}}},
        {"kafka": "hunter2"},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": ["hunter2"]}}},
        {"aws": {"endpoint_url": "https://me:hunter2@host/x y"}},
        {"table": {"uri": "postgresql://me:hunter2@host/a b"}},
        {"table": {"uri": "postgresql://me:hunter2@x/@host/a b"}},
        {"table": {"uri": "postgresql:me:hunter2@host"}},
    ],
)
def test_faults_show_no_secrets(document: dict[str, Any]) -> None:
    """Neither from the tables of client properties, nor from a URL."""
    with pytest.raises(SettingsError) as raised:
        parse_settings(folder_settings("/data", **document))
    assert "hunter2" not in str(raised.value)


def test_own_places_are_never_topics(tmp_path: Path) -> None:
    """They hold objects."""
    with pytest.raises(SettingsError, match=r"paths\.output"):
        parse_settings(folder_settings(tmp_path, paths={**folder_settings(tmp_path)["paths"], "output": "kafka://a/b"}))


def test_topics_of_streams(tmp_path: Path) -> None:
    """Each stream lands those of its input, and a job has to run for them."""
    names = ("orders", "views")
    streams = [{"name": each, "input": {"allowed_prefixes": [f"kafka://main/{each}"]}} for each in names]
    common = folder_settings(
        tmp_path, input={"allowed_prefixes": ["kafka://main"]}, kafka={"clusters": {"main": SERVERS}}
    )
    found = parse_settings({**common, "streams": streams})
    assert found.logs == ()
    assert [each.logs for each in found.streams] == [(LogName("kafka", "main", name),) for name in names]
    with pytest.raises(SettingsError, match="only a running job lands kafka://main/orders, which"):
        parse_settings({**common, "streams": streams, "control": {"mode": "on_work"}})


def test_a_job_that_lands_topics_always_runs(tmp_path: Path) -> None:
    """Started for waiting manifests alone, it would land none."""
    given = {"kafka": {"clusters": {"main": SERVERS}}, "control": {"mode": "on_work"}}
    with pytest.raises(SettingsError, match=r"control\.mode"):
        parse_settings(folder_settings(tmp_path, input={"allowed_prefixes": ["kafka://main/orders"]}, **given))
    parse_settings(folder_settings(tmp_path, input={"allowed_prefixes": ["kafka://main"]}, **given))

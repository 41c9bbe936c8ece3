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


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        (["kafka://main/orders"], ""),
        (["kafka://other/orders"], "a topic of one of kafka.clusters"),
        (["kafka://main/others"], "within input.allowed_prefixes: kafka://main/orders"),
        (["kafka://main"], "kafka://cluster/topic"),
        (["kafka://main/orders", "kafka://main/orders/"], "each of them once"),
    ],
)
def test_topics_that_the_job_plans(topics: list[str], expected: str) -> None:
    """Each is once in the list, of a known cluster, and where input may come from."""
    given = {"input": {"allowed_prefixes": ["kafka://main/orders"]}}
    kafka = {"clusters": {"main": SERVERS}, "topics": topics}
    if not expected:
        assert parse_settings(folder_settings("/data", **given, kafka=kafka)).logs == (
            LogName("kafka", "main", "orders"),
        )
        return
    with pytest.raises(SettingsError) as raised:
        parse_settings(folder_settings("/data", **given, kafka=kafka))
    assert expected in str(raised.value)


def test_topics_of_streams(tmp_path: Path) -> None:
    """Each stream plans those that its input may come from; a topic of none of them is a fault."""
    names = ("orders", "views")
    streams = [{"name": each, "input": {"allowed_prefixes": [f"kafka://main/{each}"]}} for each in names]
    topics = [f"kafka://main/{each}" for each in names]
    prefixes = {"allowed_prefixes": ["kafka://main"]}
    common = folder_settings(tmp_path, input=prefixes, kafka={"clusters": {"main": SERVERS}, "topics": topics})
    found = parse_settings({**common, "streams": streams})
    assert [each.logs for each in found.streams] == [(LogName("kafka", "main", name),) for name in names]
    with pytest.raises(SettingsError, match=r"kafka\.topics\[1\]"):
        parse_settings({**common, "streams": streams[:1]})


def test_a_job_that_plans_topics_always_runs(tmp_path: Path) -> None:
    """Started for waiting manifests alone, it would plan none."""
    kafka = {"clusters": {"main": SERVERS}, "topics": ["kafka://main/orders"]}
    given = {"input": {"allowed_prefixes": ["kafka://main"]}, "kafka": kafka, "control": {"mode": "on_work"}}
    with pytest.raises(SettingsError, match=r"control\.mode"):
        parse_settings(folder_settings(tmp_path, **given))

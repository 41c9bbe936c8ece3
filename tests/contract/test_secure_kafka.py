"""A real broker with TLS, users, tokens and rights: who gets in, and what is said to those who do not."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from compactor.adapters.kafka import properties
from compactor.adapters.kafka.broker_log import BrokerLog
from compactor.adapters.kafka.partition_consumer import Bounds, PartitionConsumer
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from tests.support.extras import KAFKA
from tests.support.kafka_broker import PASSWORD, USER
from tests.support.kafka_topics import TopicFeed
from tests.support.secure_broker import SecureBroker

if TYPE_CHECKING:
    from compactor.core.logs.ports import LogRecord

pytestmark = pytest.mark.full

SECONDS = 60.0


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    KAFKA.need()
    with SecureBroker(tmp_path_factory.mktemp("secure")) as found:
        yield found


@pytest.fixture(autouse=True)
def _passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHT", PASSWORD)
    monkeypatch.setenv("WRONG", "not-the-password")


def feed_of(secure: SecureBroker, name: str) -> TopicFeed:
    """A topic with one record."""
    feed = TopicFeed(secure.servers, name)
    feed.create(1)
    feed.send(0, b"x")
    return feed


def log_of(given: dict[str, str], seconds: float = 30.0) -> BrokerLog:
    return BrokerLog({"main": given}, request_seconds=seconds)


def user(secure: SecureBroker, reference: str = "env:RIGHT") -> dict[str, str]:
    """The properties of a user with a password."""
    given = secure.properties_of("TLSUSER")
    return {**given, "sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": reference}


def allow(feed: TopicFeed, operation: AclOperation) -> None:
    """Give the user a right on a topic."""
    change(feed, ResourceType.TOPIC, feed.name, operation, AclPermissionType.ALLOW)


def change(feed: TopicFeed, kind: ResourceType, name: str, operation: Any, permission: Any) -> None:
    rule = AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, permission)
    for each in feed.admin.create_acls([rule]).values():
        each.result(timeout=SECONDS)


def wait_for_rights(log: BrokerLog, feed: TopicFeed, *, may_read: bool) -> None:
    """Wait until the broker has taken rights in."""
    ends_at = time.monotonic() + SECONDS
    while True:
        try:
            facts = log.inspect(feed.topic)
        except AccessError:
            facts = None
        if facts is not None and facts.may_read == may_read:
            return
        assert time.monotonic() < ends_at
        time.sleep(0.1)


def records_of(log: BrokerLog, feed: TopicFeed, end: int = 1) -> list[tuple[int, bytes | None]]:
    found: list[LogRecord] = []
    while len(found) < end:
        found += [each for batch in log.read(feed.topic, "0", len(found), 1000) for each in batch.records]
    return [(each.position - 1, each.data) for each in found]


def test_tls(secure: SecureBroker) -> None:
    """A client that trusts the authority reads."""
    feed = feed_of(secure, "tls")
    log = log_of(secure.properties_of("TLS"))
    assert (log.nodes("main"), records_of(log, feed)) == (1, [(0, b"x")])


def refusals(secure: SecureBroker) -> dict[str, tuple[dict[str, str], str]]:
    """Connections that a person has to correct, with what is said of them."""
    stranger = {**secure.properties_of("TLS"), "ssl.ca.location": str(secure.stranger.file)}
    return {
        "another authority": (stranger, "self-signed certificate in certificate chain"),
        "expired": (secure.properties_of("EXPIRED"), "certificate has expired"),
        "another host": (secure.properties_of("ELSEWHERE"), "IP address mismatch"),
        "wrong password": (user(secure, "env:WRONG"), "Invalid username or password"),
    }


@pytest.mark.parametrize("name", ["another authority", "expired", "another host", "wrong password"])
def test_what_a_person_has_to_correct(secure: SecureBroker, name: str) -> None:
    """It is said in words, when topics are asked for and when a partition is read; it is not repeated for ever."""
    given, words = refusals(secure)[name]
    feed = TopicFeed(secure.servers, "refused")
    log = log_of(given, seconds=10.0)
    with pytest.raises(AccessError, match=words) as asked:
        log.describe(feed.topic)
    bounds = Bounds(0, 1)
    reading = PartitionConsumer(feed.topic, 0, bounds, given, lambda: pytest.fail("nothing is asked"))
    with pytest.raises(AccessError, match=words) as read:
        list(reading.records())
    reading.close()
    for each in (asked, read):
        assert "not-the-password" not in str(each.value)


def test_tls_to_a_listener_without_it(secure: SecureBroker) -> None:
    """This may be passing trouble, as of a broker that starts; what was met is told."""
    given = {**secure.properties_of("TLS"), "bootstrap.servers": secure.servers}
    with pytest.raises(StoreUnavailable, match="SSL connection closed by peer"):
        log_of(given, seconds=5.0).nodes("main")


def test_rights(secure: SecureBroker) -> None:
    """Without any, with Describe alone, and with Read; the doctor is told of each."""
    feed = feed_of(secure, "rights")
    log = log_of(user(secure))
    with pytest.raises(AccessError, match="TOPIC_AUTHORIZATION_FAILED"):
        log.describe(feed.topic)
    allow(feed, AclOperation.DESCRIBE)
    wait_for_rights(log, feed, may_read=False)
    facts = log.inspect(feed.topic)
    assert facts is not None
    assert (facts.may_read, facts.unknown_because) == (False, "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(AccessError, match="TOPIC_AUTHORIZATION_FAILED"):
        records_of(log, feed)
    allow(feed, AclOperation.READ)
    allow(feed, AclOperation.DESCRIBE_CONFIGS)
    wait_for_rights(log, feed, may_read=True)
    assert records_of(log, feed) == [(0, b"x")]


def test_a_group_that_may_not_be_used_is_not_needed(secure: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks for its group in any case; what the broker says to that ends no reading."""
    feed = feed_of(secure, "group")
    log = log_of(user(secure))
    allow(feed, AclOperation.READ)
    change(feed, ResourceType.GROUP, "compactor", AclOperation.ALL, AclPermissionType.DENY)
    wait_for_rights(log, feed, may_read=True)
    refused = threading.Event()
    told = PartitionConsumer._on_error

    def watched(self: PartitionConsumer, error: Any, offset: int) -> None:
        told(self, error, offset)
        if error is not None and "GROUP" in error.name():
            refused.set()

    monkeypatch.setattr(PartitionConsumer, "_on_error", watched)

    def produce_later() -> None:
        assert refused.wait(SECONDS)
        feed.send(0, b"y")

    later = threading.Thread(target=produce_later)
    later.start()
    try:
        assert records_of(log, feed, end=2) == [(0, b"x"), (1, b"y")]
    finally:
        later.join()


def unsecured_token(_region: str) -> tuple[str, float]:
    """A token that the broker of tests takes."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 3600})
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts]
    return f"{'.'.join(encoded)}.", now + 3600


def by_iam(secure: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The properties of a cluster that lets in by IAM. The broker of tests takes other tokens in the same way."""
    monkeypatch.setattr(properties, "token_of_iam", unsecured_token)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    return {**secure.properties_of("TOKEN"), "sasl.mechanism": "AWS_MSK_IAM"}


def test_tokens(secure: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client gets in by a token, asks and reads."""
    feed = feed_of(secure, "tokens")
    allow(feed, AclOperation.READ)
    log = log_of(by_iam(secure, monkeypatch))
    wait_for_rights(log, feed, may_read=True)
    assert records_of(log, feed) == [(0, b"x")]


def test_a_token_that_is_not_taken(secure: SecureBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person must act."""
    given = by_iam(secure, monkeypatch)
    monkeypatch.setattr(properties, "token_of_iam", lambda _region: ("no.token.", time.time() + 3600))
    with pytest.raises(CompactorError) as raised:
        log_of(given, seconds=10.0).nodes("main")
    assert isinstance(raised.value, AccessError), raised.value

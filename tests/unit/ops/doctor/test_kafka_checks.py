"""What the doctor says of clusters and topics."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compactor.core.errors import AccessError, CompactorError, ExtraMissing, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import TopicFacts
from compactor.ops.doctor import service_checks
from compactor.ops.doctor.findings import Finding
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring import doctor
from tests.support.memory_kafka import MemoryKafka
from tests.support.settings_files import folder_settings

TOPIC = LogName("kafka", "main", "orders")
WAIT = 3600.0


@dataclass
class AskedKafka(MemoryKafka):
    """Brokers that give one answer, or fail."""

    error: CompactorError | None = None
    facts: dict[LogName, TopicFacts] = field(default_factory=dict)

    def nodes(self, cluster: str) -> int:
        if self.error is not None:
            raise self.error
        return super().nodes(cluster)

    def inspect(self, topic: LogName) -> TopicFacts | None:
        if self.error is not None:
            raise self.error
        return self.facts.get(topic)


def topic_findings(facts: TopicFacts | None) -> list[Finding]:
    log = AskedKafka(facts={TOPIC: facts} if facts else {})
    return service_checks.topic(lambda: log, TOPIC, wait_seconds=WAIT)


@pytest.mark.parametrize(
    ("error", "next_move"),
    [
        (ExtraMissing("not installed"), "install it"),
        (AccessError("refused"), "correct the user, the password or the certificates in kafka.clusters.main"),
        (StoreUnavailable("no answer"), "check bootstrap.servers"),
    ],
)
def test_a_cluster_that_cannot_be_used(error: CompactorError, next_move: str) -> None:
    """What was said, and what to do."""
    found = service_checks.cluster(lambda: AskedKafka(error=error), "main")
    assert (found.state, found.found) == ("fault", str(error))
    assert found.next_move.startswith(next_move)


@pytest.mark.parametrize(
    ("facts", "state", "found"),
    [
        (None, "fault", "no such topic"),
        (TopicFacts(3, may_read=False), "fault", "may be described, but not read"),
        (
            TopicFacts(3, may_read=True, unknown_because="TOPIC_AUTHORIZATION_FAILED"),
            "warning",
            "TOPIC_AUTHORIZATION_FAILED",
        ),
        (TopicFacts(3, may_read=True, retention_seconds=WAIT), "fault", "records are kept for 1 h"),
        (TopicFacts(3, may_read=True, retention_seconds=3 * WAIT), "warning", "less than 4 times"),
        (TopicFacts(3, may_read=True, retention_seconds=4 * WAIT), "ok", "kept for 4 h"),
        (TopicFacts(3, may_read=None), "ok", "kept for ever"),
        (TopicFacts(3, may_read=True, retention_bytes=10), "warning", "up to 10 bytes a partition"),
    ],
)
def test_topics(facts: TopicFacts | None, state: str, found: str) -> None:
    """The last finding is the worst; each fault and warning has a next action."""
    last = topic_findings(facts)[-1]
    assert (last.state, found in last.found) == (state, True)
    assert bool(last.next_move) == (state != "ok")


def settings_of(root: Path) -> Settings:
    kafka = {"clusters": {"main": {"bootstrap.servers": "none:1"}}}
    prefixes = ["kafka://main", str(TOPIC)]
    return parse_settings(folder_settings(root, input={"allowed_prefixes": prefixes}, kafka=kafka))


def test_the_doctor_asks_each_cluster_and_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics are skipped where their cluster does not answer."""
    log = AskedKafka(facts={TOPIC: TopicFacts(3, may_read=True)})
    monkeypatch.setattr(doctor, "kafka_of", lambda *_arguments, **_options: log)
    found = {each.name: each for each in doctor.examine(settings_of(tmp_path), "", is_job_here=False)}
    assert (found["kafka main"].found, found["topic"].state) == ("1 broker answers", "ok")
    log.error = StoreUnavailable("no answer")
    found = {each.name: each for each in doctor.examine(settings_of(tmp_path), "", is_job_here=False)}
    assert (found["kafka main"].state, found["topic"].found) == ("fault", "fix kafka main first")

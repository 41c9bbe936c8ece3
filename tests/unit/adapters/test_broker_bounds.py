"""Bounds of partitions on brokers, of which some do not answer: `BrokerLog.bounds`."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.kafka.ports import Bounds, bounds_of
from compactor.core.kafka.ranges import Topic

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo

from compactor.adapters.kafka import broker_log

TOPIC = Topic("main", "events")


@dataclass
class Admin:
    """A client whose brokers answer each request for offsets as they are told to.

    Attributes:
        answers: For each request, by partition, the offset or the code of an error.
        asked: The partitions that each request was for.
    """

    answers: list[dict[int, int | str]]
    asked: list[list[int]] = field(default_factory=list)

    def list_offsets(self, wanted: Mapping[Any, Any], **_options: Any) -> dict[Any, Future[Any]]:
        given, found = self.answers[len(self.asked)], dict[Any, Future[Any]]()
        self.asked.append([place.partition for place in wanted])
        for place in wanted:
            answer = found[place] = Future()
            value = given[place.partition]
            if isinstance(value, str):
                answer.set_exception(KafkaException(KafkaError(getattr(KafkaError, value))))
            else:
                answer.set_result(ListOffsetsResultInfo(value, 0, -1))
        return found

    def poll(self, _seconds: float) -> int:
        return 0


def log_of(monkeypatch: pytest.MonkeyPatch, *answers: dict[int, int | str]) -> tuple[Any, Admin]:
    admin = Admin([*answers])
    monkeypatch.setattr(broker_log, "AdminClient", lambda _properties: admin)
    return broker_log.BrokerLog({"main": {"bootstrap.servers": "none:1"}}, request_seconds=1.0), admin


@pytest.mark.parametrize("request_number", range(3))
@pytest.mark.parametrize("fault", ["LEADER_NOT_AVAILABLE", "_TIMED_OUT", -1001])
def test_a_partition_that_fails_in_any_request(
    monkeypatch: pytest.MonkeyPatch, request_number: int, fault: int | str
) -> None:
    """It is offline as a whole, and not asked again; the other one has its bounds."""
    answers: list[dict[int, int | str]] = [{0: 2, 1: 2}, {0: 5, 1: 5}, {0: 9, 1: 9}]
    answers[request_number][1] = fault
    log, admin = log_of(monkeypatch, *answers)
    found = log.bounds(TOPIC, [0, 1])
    assert found[0] == Bounds(2, 5, 4)
    assert isinstance(found[1], StoreUnavailable)
    assert admin.asked == [[0, 1] if each <= request_number else [0] for each in range(3)]


def test_a_single_partition_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for alone, it is an error."""
    log, _ = log_of(monkeypatch, {1: "LEADER_NOT_AVAILABLE"})
    with pytest.raises(StoreUnavailable, match="kafka://main/events: LEADER_NOT_AVAILABLE"):
        bounds_of(log, TOPIC, 1)


def test_a_refusal_is_one_of_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person must act, so no partition passes for one that is offline."""
    log, _ = log_of(monkeypatch, {0: 0, 1: "TOPIC_AUTHORIZATION_FAILED"})
    with pytest.raises(AccessError):
        log.bounds(TOPIC, [0, 1])

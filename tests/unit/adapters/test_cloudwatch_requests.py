"""Requests to CloudWatch: within every limit whatever was measured, nothing lost, nothing that is no number."""

import math
from collections import Counter, deque
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import botocore.session
import pytest
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.aws.cloudwatch import (
    MAX_DATA,
    MAX_REQUEST_BYTES,
    MAX_VALUES,
    Datum,
    first_request,
    measured,
)
from compactor.core.distributions import Distribution
from compactor.telemetry.metrics import CATALOGUE

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DIMENSIONS = {"Job": "j" * 64, "Environment": "e" * 64}
PUT = botocore.session.get_session().get_service_model("cloudwatch").operation_model("PutMetricData")

NUMBERS = st.one_of(st.floats(), st.integers(-(10**6), 10**6))
COUNTS = st.integers(1, 10**9)
VALUES = st.one_of(NUMBERS, st.builds(Distribution, st.dictionaries(NUMBERS, COUNTS, max_size=400)))
EMITTED = st.lists(st.dictionaries(st.sampled_from([*sorted(CATALOGUE), "Unknown"]), VALUES, max_size=5), max_size=5)


def requests_of(data: list[Datum]) -> list[list[Datum]]:
    """A queue as it goes out."""
    queue, requests = deque(data), []
    while queue:
        requests.append(first_request(queue))
        assert requests[-1]
        for _ in requests[-1]:
            queue.popleft()
    return requests


def holdable(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= 2.0**360


@given(EMITTED)
def test_any_measurements(emitted: list[dict[str, Any]]) -> None:
    """Every value that CloudWatch can hold goes out as often as it came; all others are counted."""
    data: list[Datum] = []
    unfit = 0
    wanted: Counter[tuple[str, float]] = Counter()
    every = 0
    for values in emitted:
        found, refused = measured(values, NOW)
        data += found
        unfit += sum(refused.values())
        for name, value in values.items():
            counts = value.counts if isinstance(value, Distribution) else {value: 1}
            every += sum(counts.values())
            for each, count in counts.items():
                if name in CATALOGUE and holdable(each):
                    wanted[name, float(each) if abs(each) >= 2.0**-360 else 0.0] += count
    sent: Counter[tuple[str, float]] = Counter()
    for request in requests_of(data):
        assert len(request) <= MAX_DATA
        for datum in request:
            document = datum.document(DIMENSIONS)
            assert 1 <= len(document["Values"]) == len(document["Counts"]) <= MAX_VALUES
            for value, count in zip(document["Values"], document["Counts"], strict=True):
                assert holdable(value)
                assert value == 0 or abs(value) >= 2.0**-360
                sent[datum.name, value] += round(count)
    assert sent == wanted
    assert sum(sent.values()) + unfit == every


def test_many_values_of_one_metric() -> None:
    """What is too much for one value of a metric goes out as several."""
    arrivals = Distribution({float(seconds): seconds for seconds in range(1, 401)})
    data, unfit = measured({"ArrivalToVisibleSeconds": arrivals}, NOW)
    assert [len(datum.counts) for datum in data] == [150, 150, 100]
    assert dict(pair for datum in data for pair in datum.counts) == arrivals.counts
    assert unfit == {}


def body_bytes(protocol: str, data: list[Datum]) -> int:
    """How large the body of a request is before compression, as boto3 makes it."""
    parameters = {"Namespace": "n" * 255, "MetricData": [datum.document(DIMENSIONS) for datum in data]}
    body = create_serializer(protocol).serialize_to_request(parameters, PUT)["body"]
    return len(urlencode(body) if isinstance(body, dict) else body)


LONGEST = max(CATALOGUE, key=len)
WIDE = [-1.7976931348623157e108 - number * 1e92 for number in range(MAX_VALUES)]
QUEUES = {
    "single values": [Datum(LONGEST, NOW, ((WIDE[0], 10**9),))] * 5000,
    "full data": [Datum(LONGEST, NOW, tuple((value, 10**9) for value in WIDE))] * 200,
    "mixed": [Datum(LONGEST, NOW, tuple((value, 3) for value in WIDE[: number % 150 + 1])) for number in range(900)],
}


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("protocol", ["query", "json", "smithy-rpc-v2-cbor"])
def test_no_request_is_too_large(queue: str, protocol: str) -> None:
    """The longest numbers, names and dimensions stay below 1 MB a request in each of CloudWatch's protocols."""
    requests = requests_of(QUEUES[queue])
    assert sum(map(len, requests)) == len(QUEUES[queue])
    assert max(body_bytes(protocol, request) for request in requests[:2]) <= MAX_REQUEST_BYTES


def test_no_request_has_too_many_metrics() -> None:
    """However small they are, a request has at most as many metrics as CloudWatch takes."""
    small = [Datum("Heartbeat", NOW, ((1.0, 1),))] * 2500
    assert [len(request) for request in requests_of(small)] == [1000, 1000, 500]

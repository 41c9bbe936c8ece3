"""CloudWatch: what was emitted can be read back, and whatever happens to CloudWatch happens to no batch."""

import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.exceptions import ClientError

from compactor.adapters.aws.clients import cloudwatch_client
from compactor.adapters.aws.cloudwatch import CloudWatchMetrics
from compactor.adapters.local.machine import SystemClock
from compactor.adapters.metrics_sinks import metrics_sink
from compactor.core.distributions import Distribution
from compactor.settings.settings import parse_settings
from tests.support.aws_stand_in import REGION
from tests.support.http_server import serving
from tests.support.memory_store import ManualClock

DIMENSIONS = {"Job": "compactor-test", "Environment": "test"}
PATIENCE_SECONDS = 30.0  # of a slow server; the client gives up before


class Script:
    """A client of CloudWatch that answers as it is set to, and keeps what it was sent.

    Args:
        answers: One for each request: an error to raise, or None; when there is none left, all is well.
    """

    def __init__(self, *answers: Exception | None) -> None:
        self.sent: list[list[dict[str, Any]]] = []
        self._answers = list(answers)

    def put_metric_data(self, *, Namespace: str, MetricData: list[dict[str, Any]]) -> None:  # noqa: N803 - AWS's names
        assert Namespace == "ns"
        answer = self._answers.pop(0) if self._answers else None
        if answer is not None:
            raise answer
        self.sent.append(MetricData)

    def values(self) -> dict[str, list[float]]:
        """All values that were taken, by name."""
        found: dict[str, list[float]] = {}
        for each in (datum for data in self.sent for datum in data):
            found.setdefault(each["MetricName"], []).extend(each["Values"])
        return found


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "PutMetricData")


def sink_on(client: Any, **more: Any) -> CloudWatchMetrics:
    more.setdefault("clock", SystemClock())
    return CloudWatchMetrics(client=client, namespace="ns", dimensions=DIMENSIONS, **more)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What is logged."""
    seen: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        "compactor.adapters.aws.cloudwatch.log_event",
        lambda event, **fields: seen.append((event, fields)),
    )
    return seen


def fields_of(events: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [fields for event, fields in events if event == name]


def test_round_trip(aws_endpoint: str) -> None:
    """Values, units, dimensions and percentiles are in CloudWatch as they were emitted, through the settings' sink."""
    namespace = f"Compactor/{uuid.uuid4().hex}"
    settings = parse_settings(
        {
            "paths": {place: f"/w/{place}" for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": ["/w/raw"]},
            "aws": {"region": REGION, "endpoint_url": aws_endpoint},
            "control": {"job_name": DIMENSIONS["Job"]},
            "metrics": {"sink": "cloudwatch", "namespace": namespace, "environment": DIMENSIONS["Environment"]},
        }
    )
    sink = metrics_sink(settings, SystemClock())
    arrivals = Distribution({float(seconds): 2 for seconds in range(1, 401)})
    sink.emit({"RecordsIn": 7, "BytesIn": 2.5e12, "ArrivalToVisibleSeconds": arrivals})
    sink.emit({"RecordsIn": 5})
    assert sink.flush(20)
    client = cloudwatch_client(REGION, aws_endpoint)
    found = {
        (metric["MetricName"], *sorted((each["Name"], each["Value"]) for each in metric["Dimensions"]))
        for metric in client.list_metrics(Namespace=namespace)["Metrics"]
    }
    dimensions = tuple(sorted(DIMENSIONS.items()))
    assert found == {(name, *dimensions) for name in ("RecordsIn", "BytesIn", "ArrivalToVisibleSeconds")}

    def statistics(name: str) -> dict[str, Any]:
        now = datetime.now(UTC)
        [point] = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in DIMENSIONS.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=7200,
            Statistics=["Sum", "SampleCount", "Minimum", "Maximum"],
        )["Datapoints"]
        return dict(point)

    records, size, latency = map(statistics, ("RecordsIn", "BytesIn", "ArrivalToVisibleSeconds"))
    assert (records["Sum"], records["SampleCount"], records["Unit"]) == (12, 2, "Count")
    assert (size["Sum"], size["Unit"]) == (2.5e12, "Bytes")
    assert (latency["SampleCount"], latency["Sum"], latency["Minimum"], latency["Maximum"]) == (800, 160_400, 1, 400)


@contextmanager
def server(released: threading.Event, port: int = 0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A CloudWatch that answers when it is told to, and the headers of what it was sent."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self.rfile.read(length)
            requests.append({"length": length, "encoding": self.headers.get("Content-Encoding")})
            released.wait(PATIENCE_SECONDS)
            with suppress(OSError):  # who asked may have given up
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    running.daemon_threads = True
    with serving(running) as url:
        yield url, requests


def test_slow_server(aws_endpoint: str) -> None:  # noqa: ARG001 - for its credentials
    """While CloudWatch takes its time, emitting does not, flushing gives up in time, and all arrives in the end."""
    released = threading.Event()
    with server(released) as (url, requests):
        sink = sink_on(cloudwatch_client(REGION, url))
        started = time.monotonic()
        for number in range(100):
            sink.emit({"RecordsIn": number, "ArrivalToVisibleSeconds": Distribution({1.5: 3})})
        assert not sink.flush(0.2)
        assert time.monotonic() - started < PATIENCE_SECONDS / 3
        released.set()
        assert sink.flush(20)
        assert len(requests) <= 4  # what waited went together
        assert "gzip" in {request["encoding"] for request in requests}


def test_server_that_is_down(aws_endpoint: str, events: list[Any]) -> None:  # noqa: ARG001 - for its credentials
    """While CloudWatch is away, emitting is quick and raises nothing, and what waits is logged; later it arrives."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        port = taken.getsockname()[1]
        sink = sink_on(cloudwatch_client(REGION, f"http://127.0.0.1:{port}"))
        started = time.monotonic()
        sink.emit({"Heartbeat": 1})
        sink.emit({"Heartbeat": 1})
        assert time.monotonic() - started < PATIENCE_SECONDS / 3
        assert not sink.flush(1.5)
    assert fields_of(events, "metrics.not_flushed") == [{"metrics": 2, "timeout_seconds": 1.5}]
    released = threading.Event()
    released.set()
    with server(released, port) as (_, requests):
        assert sink.flush(20)
        assert len(requests) == 1


class Away(Script):
    """A CloudWatch that throttles until it was sent so many metrics at once, and once more."""

    def __init__(self, metrics: int) -> None:
        super().__init__()
        self._metrics = metrics
        self._was_asked = False

    def put_metric_data(self, **request: Any) -> None:
        if not self._was_asked:
            self._was_asked = len(request["MetricData"]) == self._metrics
            raise refusal("ThrottlingException")
        super().put_metric_data(**request)


def test_an_outage_that_ends(events: list[Any]) -> None:
    """What failed is sent again, in its order, with the time at which it was measured."""
    clock = ManualClock()
    client = Away(3)
    sink = sink_on(client, clock=clock)
    for number in (1, 2, 3):
        sink.emit({"RecordsIn": number})
        clock.advance(60)
    assert sink.flush(10)
    assert client.values() == {"RecordsIn": [1, 2, 3]}
    times = [datum["Timestamp"] for data in client.sent for datum in data]
    assert times == [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in (0, 1, 2)]
    assert {fields["refused"] for fields in fields_of(events, "metrics.not_sent")} == {False}
    assert fields_of(events, "metrics.dropped") == []


@pytest.mark.parametrize(
    "error", [OSError("down"), refusal("AccessDenied"), refusal("ExpiredToken"), refusal("InternalFailure")], ids=repr
)
def test_trouble_that_may_pass(error: Exception) -> None:
    """Any error that is not the request's own is waited out: a missing right may be granted, for example."""
    client = Script(error)
    sink = sink_on(client)
    sink.emit({"RecordsIn": 1})
    assert sink.flush(10)
    assert client.values() == {"RecordsIn": [1]}


class Switched(Script):
    """A CloudWatch that is down until it is not."""

    def __init__(self) -> None:
        super().__init__()
        self.is_up = threading.Event()

    def put_metric_data(self, **request: Any) -> None:
        if not self.is_up.is_set():
            raise OSError("down")
        super().put_metric_data(**request)


def test_a_long_outage(events: list[Any]) -> None:
    """When too much waits, the oldest goes, and its number is logged and sent as a metric once all is well."""
    client = Switched()
    sink = sink_on(client, max_queued=10)
    for number in range(25):
        sink.emit({"RecordsIn": number})
    assert not sink.flush(0.3)
    client.is_up.set()
    assert sink.flush(10)
    assert client.values() == {"MetricsDropped": [15], "RecordsIn": [*map(float, range(15, 25))]}
    assert sum(fields["values"] for fields in fields_of(events, "metrics.dropped")) == 15
    sink.emit({"RecordsIn": 25})
    assert sink.flush(10)
    assert client.values()["MetricsDropped"] == [15]


def test_a_request_that_is_refused(events: list[Any]) -> None:
    """A request that no retry would fix is dropped and counted, and holds nothing else up."""
    client = Script(refusal("InvalidParameterValueException"))
    sink = sink_on(client)
    sink.emit({"RecordsIn": 1, "RecordsOut": 1})
    assert sink.flush(10)
    sink.emit({"RecordsIn": 2})
    assert sink.flush(10)
    assert client.values() == {"MetricsDropped": [2], "RecordsIn": [2]}
    assert fields_of(events, "metrics.dropped") == [{"values": 2, "of_all": 2}]


def test_what_is_too_old() -> None:
    """What waited for two weeks does not make CloudWatch refuse what is new."""
    clock = ManualClock()
    client = Switched()
    sink = sink_on(client, clock=clock)
    sink.emit({"RecordsIn": 1})
    assert not sink.flush(0.3)
    clock.advance(14 * 86_400)
    sink.emit({"RecordsIn": 2})
    client.is_up.set()
    assert sink.flush(10)
    assert client.values() == {"MetricsDropped": [1], "RecordsIn": [2]}


def test_what_is_no_number(events: list[Any]) -> None:
    """NaN, the infinite, the unknown and the senseless never leave; they are counted, and their neighbours arrive."""
    client = Script()
    sink = sink_on(client)
    nonsense: Any = "twelve"
    sink.emit({"RecordsIn": float("nan"), "RecordsOut": float("inf"), "Unheard": 1, "BytesIn": 3})
    sink.emit({"RecordsIn": nonsense})
    sink.emit({"RecordsIn": 10**400, "ArrivalToVisibleSeconds": Distribution({float("nan"): 4, 2.0: 5})})
    assert sink.flush(10)
    found = client.values()
    assert (found["BytesIn"], found["ArrivalToVisibleSeconds"]) == ([3], [2])
    assert sum(found["MetricsDropped"]) == 3 + 1 + 5
    assert set(found) == {"BytesIn", "ArrivalToVisibleSeconds", "MetricsDropped"}
    assert len(fields_of(events, "metrics.not_understood")) == 1

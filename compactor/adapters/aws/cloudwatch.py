"""Sends metrics to CloudWatch from a separate thread, so that no batch waits for them or fails with them."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Literal

from botocore.exceptions import ClientError, ParamValidationError

from compactor.adapters.aws.errors import error_code, own_error, pause_before_try, translated
from compactor.core.distributions import Distribution
from compactor.core.ports import NO_DIMENSIONS, Clock
from compactor.telemetry.logs import log_event
from compactor.telemetry.metrics import CATALOGUE

MAX_DATA = 1000
"""The most metrics per PutMetricData [CloudWatch API]."""

MAX_REQUEST_BYTES = 1_000_000  # 1 MB per POST [CloudWatch API], measured before compression
MAX_VALUES = 150  # values of one metric in one request [CloudWatch API]
MAX_AGE_SECONDS = 14 * 86_400 - 3600  # two weeks [CloudWatch API], less a margin for clocks
_GREATEST = 2.0**360  # and its inverse is the least except 0 [CloudWatch API]

# Upper bounds for a metric and for each value, in form encoding: the longest of CloudWatch's protocols.
_DATUM_BYTES = 600
_VALUE_BYTES = 140
_DIMENSION_BYTES = 140  # of an additional dimension without its value, which needs no escapes


@dataclass(frozen=True, slots=True)
class Datum:
    """At most `MAX_VALUES` values of one metric at one time, each with its number of occurrences.

    Attributes:
        about: Dimensions to send in addition to the job's, instead of all dimension sets; empty if there is none.
    """

    name: str
    at: datetime
    counts: tuple[tuple[float, int], ...]
    about: tuple[tuple[str, str], ...] = ()

    @property
    def size_bytes(self) -> int:
        """An upper bound for its size in a request."""
        further = sum(_DIMENSION_BYTES + len(value) for _, value in self.about)
        return _DATUM_BYTES + _VALUE_BYTES * len(self.counts) + further

    def document(self, dimensions: Mapping[str, str]) -> dict[str, Any]:
        """Its PutMetricData argument."""
        return {
            "MetricName": self.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            "Timestamp": self.at,
            "Unit": CATALOGUE[self.name].unit,
            "Values": [value for value, _ in self.counts],
            "Counts": [float(count) for _, count in self.counts],
        }


def measured(
    values: Mapping[str, float | Distribution], at: datetime, about: Mapping[str, str] = NO_DIMENSIONS
) -> tuple[list[Datum], dict[str, int]]:
    """Convert measurements to data; also return how many values of each metric CloudWatch cannot represent."""
    data: list[Datum] = []
    unfit: dict[str, int] = {}
    for name, value in values.items():
        counts = value.counts if isinstance(value, Distribution) else {value: 1}
        good = {each: count for each, count in counts.items() if name in CATALOGUE and _is_fit(each)}
        if refused := sum(counts.values()) - sum(good.values()):
            unfit[name] = refused
        data += [Datum(name, at, part, tuple(about.items())) for part in _parts(good)]
    return data, unfit


def _is_fit(value: float) -> bool:
    return abs(value) <= _GREATEST  # false for NaN


def _parts(counts: Mapping[float, int]) -> Iterator[tuple[tuple[float, int], ...]]:
    # Values that CloudWatch cannot distinguish from 0 become 0.
    pairs = ((float(value) if abs(value) >= 1 / _GREATEST else 0.0, count) for value, count in counts.items())
    return iter(lambda: tuple(islice(pairs, MAX_VALUES)), ())


def first_request(data: Iterable[Datum], *, copies: int = 1) -> list[Datum]:
    """The longest head of a queue that fits into one request; at least one element if there is any.

    Each is sent `copies` times, with different dimensions.
    """
    request: list[Datum] = []
    size_bytes = _DATUM_BYTES  # for the namespace and the rest of the envelope
    for datum in islice(data, MAX_DATA // copies):
        size_bytes += datum.size_bytes * copies
        if size_bytes > MAX_REQUEST_BYTES:
            break
        request.append(datum)
    return request


Statistic = Literal["Sum", "Average", "Maximum"]

_DAY_SECONDS = 86_400  # one period for all measurements


def metric_statistic(
    client: Any, namespace: str, name: str, dimensions: Mapping[str, str], statistic: Statistic, *, now: datetime
) -> float | None:
    """A statistic over the last day's values of a metric with exactly these dimensions; None without values."""
    with translated(f"metric {name} in {namespace}"):
        answer = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
            StartTime=now - timedelta(seconds=_DAY_SECONDS),
            EndTime=now + timedelta(hours=1),
            Period=_DAY_SECONDS + 3600,
            Statistics=[statistic],
        )
    points = [point[statistic] for point in answer["Datapoints"]]
    if not points:
        return None
    return float(sum(points) if statistic == "Sum" else max(points))


MAX_QUEUED = 20_000
"""The most metrics queued while CloudWatch is unreachable: several hours of them, in about 20 MB."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HURRIED_PAUSE_SECONDS = 0.2  # while a caller waits in `flush`

_WRONG = {
    "InvalidParameterValue",
    "InvalidParameterCombination",
    "InvalidFormat",
    "MissingParameter",
    "MissingRequiredParameter",
    "Validation",
    "ValidationError",
    "Serialization",
    "MalformedInput",
    "RequestEntityTooLarge",
    "413",
}
"""Errors for an invalid request, without the `Exception` that some protocols append. No retry helps."""

_Answer = Literal["taken", "refused", "none"]


@dataclass(kw_only=True)
class CloudWatchMetrics:
    """Sends metrics to CloudWatch in order.

    While CloudWatch is unreachable they wait in a queue, and the oldest are dropped when it is full. Drops are counted,
    in the log and in the metric `MetricsDropped`.

    Attributes:
        dimensions: Every metric's dimensions.
        stream: The value of an additional dimension `Stream`; each metric is then sent with and without it, because
            CloudWatch does not aggregate over dimensions. Empty for none.
        shard: The value of an additional dimension `Shard`, in the same way.
        sums_shards: Whether to send metrics without that dimension, too; it has no effect without a shard.
    """

    client: Any
    namespace: str
    dimensions: Mapping[str, str]
    clock: Clock
    stream: str = ""
    shard: str = ""
    sums_shards: bool = True
    max_queued: int = MAX_QUEUED

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[Datum] = deque()
        self._in_flight = 0
        self._lost_values = 0
        self._lost_values_logged = 0
        self._lost_values_sent = 0
        self._flushing = 0
        self._thread: threading.Thread | None = None

    @property
    def dimension_sets(self) -> list[Mapping[str, str]]:
        """The dimension sets with which each metric is sent."""
        of_all = [self.dimensions] if self.sums_shards or not self.shard else []
        further = {"Stream": self.stream, "Shard": self.shard}
        return [*of_all, *({**self.dimensions, name: value} for name, value in further.items() if value)]

    def emit(self, values: Mapping[str, float | Distribution], about: Mapping[str, str] = NO_DIMENSIONS) -> None:
        try:
            data, unfit = measured(values, self.clock.now(), about)
        except Exception as exc:  # noqa: BLE001 - no measurement is worth a batch
            log_event("metrics.not_understood", error=exc)
            data, unfit = [], dict.fromkeys(values, 1)
        if unfit:
            log_event("metrics.unfit", values=unfit)
        with self._changed:
            self._lost_values += sum(unfit.values())
            self._lost_values_logged += sum(unfit.values())
            self._queue.extend(data)
            self._shorten()
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_all, name="cloudwatch-metrics", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queue and not self._in_flight, timeout_seconds)
            self._flushing -= 1
            left = len(self._queue) + self._in_flight
        if left:
            log_event("metrics.not_flushed", metrics=left, timeout_seconds=timeout_seconds)
        return not left

    def _send_all(self) -> None:
        failures = 0
        while True:
            batch, lost_values = self._next_batch()
            answer = self._send(batch, lost_values)
            self._settle(batch, lost_values, answer)
            failures = failures + 1 if answer == "none" else 0
            if failures:
                self._pause(failures)

    def _next_batch(self) -> tuple[list[Datum], Datum | None]:
        """Wait for the next request: data from the queue, and the unreported number of drops."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue))
            now = self.clock.now()
            self._forget_until(now - timedelta(seconds=MAX_AGE_SECONDS))
            lost = self._lost_values - self._lost_values_sent
            lost_values = Datum("MetricsDropped", now, ((float(lost), 1),)) if lost else None
            unsent = () if lost_values is None else (lost_values,)
            batch = first_request(chain(unsent, self._queue), copies=len(self.dimension_sets))[len(unsent) :]
            for _ in batch:
                self._queue.popleft()
            self._in_flight = len(batch) + len(unsent)
            return batch, lost_values

    def _send(self, batch: list[Datum], lost_values: Datum | None) -> _Answer:
        data = batch if lost_values is None else [lost_values, *batch]
        try:
            # The client compresses large requests.
            documents = [datum.document(each) for datum in data for each in self._dimensions_of(datum)]
            self.client.put_metric_data(Namespace=self.namespace, MetricData=documents)
        except Exception as exc:  # noqa: BLE001 - no error may end the thread
            refused = isinstance(exc, ParamValidationError) or (isinstance(exc, ClientError) and _is_wrong(exc))
            log_event("metrics.not_sent", metrics=len(data), refused=refused, error=own_error("CloudWatch", exc))
            return "refused" if refused else "none"
        return "taken"

    def _dimensions_of(self, datum: Datum) -> list[Mapping[str, str]]:
        return [{**self.dimensions, **dict(datum.about)}] if datum.about else self.dimension_sets

    def _settle(self, batch: list[Datum], lost_values: Datum | None, answer: _Answer) -> None:
        with self._changed:
            self._in_flight = 0
            if answer == "taken":
                self._lost_values_sent += 0 if lost_values is None else round(lost_values.counts[0][0])
            elif answer == "refused":
                self._lost_values += sum(map(_values_of, batch))
            else:
                self._queue.extendleft(reversed(batch))
                self._shorten()
            lost = self._lost_values - self._lost_values_logged
            self._lost_values_logged = self._lost_values
            self._changed.notify_all()
        if lost:
            log_event("metrics.dropped", values=lost, of_all=self._lost_values)

    def _shorten(self) -> None:
        while len(self._queue) > self.max_queued:
            self._lost_values += _values_of(self._queue.popleft())

    def _forget_until(self, moment: datetime) -> None:
        """Drop values that are so old that CloudWatch would refuse the request."""
        while self._queue and self._queue[0].at < moment:
            self._lost_values += _values_of(self._queue.popleft())

    def _pause(self, failures: int) -> None:
        seconds = pause_before_try(failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS)
        with self._changed:
            is_hurried = self._changed.wait_for(lambda: self._flushing > 0, seconds)
        if is_hurried:
            time.sleep(HURRIED_PAUSE_SECONDS)


def _values_of(datum: Datum) -> int:
    return sum(count for _, count in datum.counts)


def _is_wrong(error: ClientError) -> bool:
    return error_code(error).removesuffix("Exception") in _WRONG

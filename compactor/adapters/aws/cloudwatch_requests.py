"""Measurements as CloudWatch takes them: which values it can hold, and how many of them go into one request."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from compactor.core.distributions import Distribution
from compactor.telemetry.metrics import CATALOGUE

MAX_DATA = 1000
"""The most metrics in one PutMetricData [CloudWatch API]."""

MAX_REQUEST_BYTES = 1_000_000  # 1 MB for each POST [CloudWatch API], held to before compression
MAX_VALUES = 150  # values of one metric in one request [CloudWatch API]
MAX_AGE_SECONDS = 14 * 86_400 - 3600  # two weeks [CloudWatch API], less what clocks may differ
_GREATEST = 2.0**360  # and its inverse is the least, but for 0 [CloudWatch API]

# Upper bounds of what the longest of CloudWatch's protocols, form fields, makes of a metric and of each value of it.
_DATUM_BYTES = 600
_VALUE_BYTES = 140


@dataclass(frozen=True, slots=True)
class Datum:
    """Some values of one metric at one time.

    Attributes:
        name: As the catalogue has it.
        at: When they were measured.
        counts: At most `MAX_VALUES` values, each with how often it came.
    """

    name: str
    at: datetime
    counts: tuple[tuple[float, int], ...]

    @property
    def size_bytes(self) -> int:
        """No less than it takes in a request."""
        return _DATUM_BYTES + _VALUE_BYTES * len(self.counts)

    def document(self, dimensions: Mapping[str, str]) -> dict[str, Any]:
        """As PutMetricData takes it."""
        return {
            "MetricName": self.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            "Timestamp": self.at,
            "Unit": CATALOGUE[self.name].unit,
            "Values": [value for value, _ in self.counts],
            "Counts": [float(count) for _, count in self.counts],
        }


def measured(values: Mapping[str, float | Distribution], at: datetime) -> tuple[list[Datum], dict[str, int]]:
    """Measurements as data.

    Args:
        values: What was emitted.
        at: When.

    Returns:
        The data; and what CloudWatch cannot hold: how many values, by the metric's name.
    """
    data: list[Datum] = []
    unfit: dict[str, int] = {}
    for name, value in values.items():
        counts = value.counts if isinstance(value, Distribution) else {value: 1}
        good = {each: count for each, count in counts.items() if name in CATALOGUE and _is_fit(each)}
        if refused := sum(counts.values()) - sum(good.values()):
            unfit[name] = refused
        data += [Datum(name, at, part) for part in _parts(good)]
    return data, unfit


def _is_fit(value: float) -> bool:
    return abs(value) <= _GREATEST  # which NaN is not


def _parts(counts: Mapping[float, int]) -> Iterator[tuple[tuple[float, int], ...]]:
    # What is smaller than CloudWatch can tell from 0 is 0.
    pairs = ((float(value) if abs(value) >= 1 / _GREATEST else 0.0, count) for value, count in counts.items())
    return iter(lambda: tuple(islice(pairs, MAX_VALUES)), ())


def first_request(data: Iterable[Datum]) -> list[Datum]:
    """As many data from the head of a queue as one request takes; at least one, if there is one."""
    request: list[Datum] = []
    size_bytes = _DATUM_BYTES  # for the namespace and the rest of the envelope
    for datum in islice(data, MAX_DATA):
        size_bytes += datum.size_bytes
        if size_bytes > MAX_REQUEST_BYTES:
            break
        request.append(datum)
    return request

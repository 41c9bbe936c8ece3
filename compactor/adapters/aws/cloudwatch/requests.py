"""Makes requests of CloudWatch from measurements, within its limits on values and sizes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from compactor.core.distributions import Distribution
from compactor.core.ports import NO_DIMENSIONS
from compactor.telemetry.metrics import CATALOGUE

MAX_DATA = 1000
"""The most metrics in one PutMetricData [CloudWatch API]."""

MAX_REQUEST_BYTES = 1_000_000  # 1 MB for each POST [CloudWatch API], applied before compression
MAX_VALUES = 150  # values of one metric in one request [CloudWatch API]
MAX_AGE_SECONDS = 14 * 86_400 - 3600  # two weeks [CloudWatch API], less a margin for clocks
_GREATEST = 2.0**360  # and its inverse is the least except 0 [CloudWatch API]

# Upper bounds for a metric and for each value, in form fields: the longest of CloudWatch's protocols.
_DATUM_BYTES = 600
_VALUE_BYTES = 140
_DIMENSION_BYTES = 140  # of a further dimension without its value, which needs no escapes


@dataclass(frozen=True, slots=True)
class Datum:
    """At most `MAX_VALUES` values of one metric at one time, each with its number of occurrences.

    Attributes:
        about: Dimensions beside those of the job, with which alone it is sent; none for what is sent with all sets.
    """

    name: str
    at: datetime
    counts: tuple[tuple[float, int], ...]
    about: tuple[tuple[str, str], ...] = ()

    @property
    def size_bytes(self) -> int:
        """An upper bound of its size in a request."""
        further = sum(_DIMENSION_BYTES + len(value) for _, value in self.about)
        return _DATUM_BYTES + _VALUE_BYTES * len(self.counts) + further

    def document(self, dimensions: Mapping[str, str]) -> dict[str, Any]:
        """The argument of PutMetricData."""
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
    """Turn measurements into data; returns also how many values of each metric CloudWatch cannot hold."""
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
    # Values that CloudWatch cannot tell from 0 become 0.
    pairs = ((float(value) if abs(value) >= 1 / _GREATEST else 0.0, count) for value, count in counts.items())
    return iter(lambda: tuple(islice(pairs, MAX_VALUES)), ())


def first_request(data: Iterable[Datum], *, copies: int = 1) -> list[Datum]:
    """As many data from the head of a queue as fit into one request, and at least one if there is any.

    `copies` says how often each is in the request, with other dimensions each time.
    """
    request: list[Datum] = []
    size_bytes = _DATUM_BYTES  # for the namespace and the rest of the envelope
    for datum in islice(data, MAX_DATA // copies):
        size_bytes += datum.size_bytes * copies
        if size_bytes > MAX_REQUEST_BYTES:
            break
        request.append(datum)
    return request

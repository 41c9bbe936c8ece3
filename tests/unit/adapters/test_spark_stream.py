"""Which error ends the stream of Spark, where there are several."""

from typing import Any

import pytest

from compactor.adapters.spark.stream import SparkManifestSource
from compactor.core.errors import CompactorError, EngineLost, StoreUnavailable


class EndedQuery:
    """A query that ended with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def awaitTermination(self, timeout_seconds: float) -> bool:  # noqa: ARG002, N802 - a name of Spark's
        raise self._error


def stream(query: Any, batch_error: Exception | None = None) -> SparkManifestSource:
    """A source whose query runs."""
    session: Any = None
    return SparkManifestSource(
        session=session,
        manifests="/m/",
        checkpoint="",
        max_manifests_per_trigger=1,
        trigger_interval_seconds=1,
        _query=query,
        _batch_error=batch_error,
    )


@pytest.mark.parametrize(
    ("of_query", "raised"),
    [
        (CompactorError("what Spark made of it"), StoreUnavailable),
        (EngineLost("the JVM is gone"), EngineLost),
    ],
)
def test_the_error_that_ends_the_stream(of_query: Exception, raised: type[Exception]) -> None:
    """A batch's own error comes in place of what Spark made of it, but never in place of a lost JVM."""
    source = stream(EndedQuery(of_query), StoreUnavailable("503"))
    with pytest.raises(raised):
        source.wait(0)


class ListingQuery:
    """A query that says of itself what it does."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("message", "has_data", "is_active", "idle"),
    [
        ("Initializing sources", False, False, False),
        ("Getting offsets from FileStreamSource[s3a://lake/manifests]", False, True, False),
        ("Processing new data", True, True, False),
        ("Waiting for next trigger", True, False, False),
        ("Waiting for next trigger", False, False, True),
        ("Waiting for data to arrive", False, False, True),
    ],
)
def test_a_stream_is_idle_after_its_first_listing(message: str, has_data: bool, is_active: bool, idle: bool) -> None:
    """As Spark 4.1 tells of itself: a query that has not begun to list has no data and no trigger either."""
    query: Any = ListingQuery()
    query.status = {"message": message, "isDataAvailable": has_data, "isTriggerActive": is_active}
    assert stream(query).is_idle() == idle

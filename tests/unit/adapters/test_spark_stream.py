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


@pytest.mark.parametrize(
    ("of_query", "raised"),
    [
        (CompactorError("what Spark made of it"), StoreUnavailable),
        (EngineLost("the JVM is gone"), EngineLost),
    ],
)
def test_the_error_that_ends_the_stream(of_query: Exception, raised: type[Exception]) -> None:
    """A batch's own error comes in place of what Spark made of it, but never in place of a lost JVM."""
    session: Any = None
    query: Any = EndedQuery(of_query)
    source = SparkManifestSource(
        session=session,
        manifests="/m/",
        checkpoint="",
        max_manifests_per_trigger=1,
        trigger_interval_seconds=1,
        _query=query,
        _batch_error=StoreUnavailable("503"),
    )
    with pytest.raises(raised):
        source.wait(0)

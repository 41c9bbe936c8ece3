"""Logs and errors: events with fields in one of two forms, and errors that keep their kind on their way."""

import io
import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor.adapters.metrics_sinks import LogMetrics
from compactor.distributions import Distribution
from compactor.errors import AccessError, CompactorError, FileError, ManifestError, SettingsError, TryAgainError
from compactor.logs import LOGGER, configure_logs, log_event


@pytest.fixture(autouse=True)
def _logger_as_before() -> Iterator[None]:
    handlers, level, propagate = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    yield
    LOGGER.handlers[:] = handlers
    LOGGER.setLevel(level)
    LOGGER.propagate = propagate


def test_json_lines() -> None:
    """One JSON object a line, whatever the values are."""
    stream = io.StringIO()
    configure_logs(as_json=True, stream=stream)
    log_event("manifest.committed", manifest_id="m\n1", rows=3, place=Path("/x"))
    log_event("too.quiet", level="debug")
    arrivals = Distribution({2.0: 98, 60.0: 2})
    LogMetrics("ns").emit({"Heartbeat": 1, "ArrivalToVisibleSeconds": arrivals})
    committed, metrics = (json.loads(line) for line in stream.getvalue().splitlines())
    assert committed.pop("time").endswith("+00:00")
    assert committed == {
        "level": "info",
        "event": "manifest.committed",
        "manifest_id": "m\n1",
        "rows": 3,
        "place": "/x",
    }
    latency = {"count": 100, "p50": 2.0, "p99": 60.0}
    assert metrics["values"] == {"Heartbeat": 1, "ArrivalToVisibleSeconds": latency}
    assert metrics["namespace"] == "ns"


def test_readable_lines() -> None:
    """Time, level, event and fields; with the traceback of an error."""
    stream = io.StringIO()
    configure_logs(as_json=False, level="warning", stream=stream)
    log_event("too.quiet")
    log_event("stream.restarting", level="warning", seconds=2)
    assert stream.getvalue()[9:] == "warning stream.restarting seconds=2\n"


@pytest.mark.parametrize("as_json", [True, False])
def test_tracebacks(as_json: bool) -> None:
    """An exception comes with its traceback."""
    stream = io.StringIO()
    configure_logs(as_json=as_json, stream=stream)
    try:
        int("boom")
    except ValueError:
        logging.getLogger("compactor").exception("it.failed")
    assert "ValueError: invalid literal" in stream.getvalue()


@pytest.mark.parametrize(
    "error",
    [
        ManifestError("not_json", "m: x"),
        FileError("missing", "f: gone"),
        SettingsError(["a: 1", "b: 2"]),
        AccessError("denied"),
        TryAgainError("later"),
    ],
)
def test_errors_survive_a_process(error: CompactorError) -> None:
    """Errors come back from another process with all that they carried."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - just pickled
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))

"""Logs and errors: events with fields in one of two forms, and errors that keep their kind on their way."""

import errno
import io
import json
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.adapters.metrics_sinks import LogMetrics
from compactor.core.distributions import Distribution
from compactor.core.errors import (
    AccessError,
    CompactorError,
    FileError,
    ManifestError,
    SettingsError,
    StagingLost,
    TryAgainError,
)
from compactor.telemetry.error_text import described
from compactor.telemetry.log_events import CATALOGUE
from compactor.telemetry.logs import LOGGER, configure_logs, log_event, run_in_log
from tests.support.hostile_names import NAMES, NOT_TEXT, check_shown


@pytest.fixture(autouse=True)
def _logger_as_before() -> Iterator[None]:
    handlers, level, propagate = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    yield
    LOGGER.handlers[:] = handlers
    LOGGER.setLevel(level)
    LOGGER.propagate = propagate


def test_json_lines() -> None:
    """One JSON object a line, whatever the values are; of everyday events without a next move."""
    stream = io.StringIO()
    configure_logs(as_json=True, stream=stream)
    log_event("files.held", files=3, first=Path("/x"), until=datetime(2026, 1, 2, tzinfo=UTC))
    log_event("orphans.swept", removed={"m\n1": 2**70, "\udc80": 1})
    arrivals = Distribution({2.0: 98, 60.0: 2})
    LogMetrics("ns").emit({"Heartbeat": 1, "ArrivalToVisibleSeconds": arrivals})
    held, swept, metrics = (json.loads(line) for line in stream.getvalue().splitlines())
    assert datetime.fromisoformat(held.pop("time")).utcoffset() == timedelta(0)
    assert held == {
        "level": "warning",
        "event": "files.held",
        "files": 3,
        "first": "/x",
        "until": "2026-01-02T00:00:00+00:00",
        "next": CATALOGUE["files.held"].next_move,
    }
    assert swept["removed"] == {"m\n1": 2**70, "\udc80": 1}
    assert "next" not in swept
    latency = {"count": 100, "p50": 2.0, "p99": 60.0}
    assert metrics["values"] == {"Heartbeat": 1, "ArrivalToVisibleSeconds": latency}
    assert metrics["namespace"] == "ns"


def test_readable_lines() -> None:
    """Time, level, event, fields, each on the one line, and the next move at its end."""
    stream = io.StringIO()
    configure_logs(as_json=False, level="warning", stream=stream)
    log_event("batch.finished", manifests=1, failed=0, stuck=0, seconds=1.5)
    log_event("landing.gap", log="", gap='two\nlines, "so"')
    log_event("files.held", files=1, first="a b", until=datetime(2026, 1, 2, tzinfo=UTC))
    gap, held = stream.getvalue().splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ warning landing\.gap ", gap)
    next_move = CATALOGUE["landing.gap"].next_move
    assert gap.endswith(f' log="" gap="two\\nlines, \\"so\\"" -> {next_move}')
    assert ' first="a b" until=2026-01-02T00:00:00+00:00 -> ' in held


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("name", [*NAMES.values(), *NOT_TEXT.values()])
def test_names_in_the_log(name: bytes, *, as_json: bool) -> None:
    """Names from outside neither act on a terminal nor begin a line of their own, also in tracebacks."""
    stream, text = io.StringIO(), name.decode(errors="surrogateescape")
    configure_logs(as_json=as_json, stream=stream)
    log_event("files.held", files=1, first=text, until=None)
    log_event("command.failed", command="trace", error=OSError(errno.EIO, "cannot read", text))
    log_event("landing.gap", log=text, gap=f"a{text}")
    shown = check_shown(stream.getvalue().encode())
    if as_json:
        assert json.loads(shown.split("\n")[0])["first"] == text
    assert len(shown.rstrip("\n").split("\n")) == (3 if as_json else 5)  # the traceback has two lines of its own


def test_every_event_of_a_run_has_its_id() -> None:
    """While a run is at work its id is on every event of the process, and afterwards on none."""
    stream = io.StringIO()
    configure_logs(as_json=True, stream=stream)
    with run_in_log("r1"), ThreadPoolExecutor(1) as pool:
        pool.submit(log_event, "run.asked_to_stop").result()
    log_event("run.asked_to_stop")
    inside, outside = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (inside["run_id"], "run_id" in outside) == ("r1", False)


def test_a_line_is_worth_no_batch() -> None:
    """An unknown event, and fields that JSON cannot represent, are logged all the same."""
    stream = io.StringIO()
    configure_logs(as_json=True, stream=stream)
    unknown: Any = "un.known"
    log_event(unknown, what=object(), how=float("nan"), who={1: b"x"})
    assert json.loads(stream.getvalue())["event"] == "un.known"


@pytest.mark.parametrize("as_json", [True, False])
def test_tracebacks(as_json: bool) -> None:
    """An unexpected error comes with its traceback and its causes, but with nothing that it quotes."""
    stream = io.StringIO()
    configure_logs(as_json=as_json, stream=stream)
    value = "4111 1111"
    try:
        try:
            int(value)
        except ValueError as exc:
            raise KeyError(value) from exc
    except KeyError as exc:
        log_event("manifest.failed", manifest_id="m1", error=exc)
    said = stream.getvalue()
    assert said.count("Traceback (most recent call last)") == 2
    assert "ValueError in " in said
    assert "KeyError in " in said
    assert value not in said


def test_errors_on_purpose_need_no_traceback() -> None:
    """What the compactor says itself is told as it is; what its kind asks for is the next move."""
    stream = io.StringIO()
    configure_logs(as_json=True, stream=stream)
    log_event("manifest.stuck", manifest_id="m1", error=StagingLost("s3://x: gone"))
    said = json.loads(stream.getvalue())
    assert (said["error"], said["next"], "traceback" in said) == ("s3://x: gone", StagingLost.next_move, False)


QUOTING = {
    "value": ValueError("invalid literal for int() with base 10: 'SECRET'"),
    "key": KeyError("SECRET"),
    "arrow": pa.ArrowInvalid("Could not convert 'SECRET' with type str"),
    "json": json.JSONDecodeError("SECRET", "SECRET", 0),
    "unicode": UnicodeDecodeError("utf-8", b"SECRET", 0, 1, "SECRET"),
    "nameless": OSError("SECRET"),
}


@pytest.mark.parametrize("error", QUOTING.values(), ids=QUOTING)
def test_what_errors_of_others_quote_is_not_told(error: Exception) -> None:
    """Of errors of others the kind is told, and no word of their text."""
    assert type(error).__name__ in described(error)
    assert "SECRET" not in described(error)


def test_what_a_system_says_is_told() -> None:
    """Errors of the system name a file and the reason, which an operator has to know."""
    assert described(FileNotFoundError(2, "No such file or directory", "/x")) == (
        "FileNotFoundError: No such file or directory: /x"
    )
    assert described(AccessError("s3://x: denied")) == "s3://x: denied"
    assert described(AccessError("x" * 600)).endswith("x...")


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

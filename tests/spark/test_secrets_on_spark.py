"""No data of a line gets into the log or the records, whatever fails in Spark or in Python on its executors."""

import gzip
import io
from collections.abc import Iterator
from typing import Any

import pytest

import compactor.adapters.spark.executor_tasks as tasks
from compactor.adapters.spark.failures import translated
from compactor.core.errors import EngineFailed
from compactor.telemetry.logs import LOGGER, configure_logs

CARD = "4111-1111-1111-1111"
TOO_LONG = "k" * 60_000
"""A key of such a length is JSON, but not to Spark, whose error would quote the row."""


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged."""
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    stream = io.StringIO()
    configure_logs(as_json=True, level="debug", stream=stream)
    yield stream
    LOGGER.handlers[:], LOGGER.propagate = before[0], before[2]
    LOGGER.setLevel(before[1])


def test_bad_lines_are_told_by_their_reason_alone(new_workspace: Any, log: io.StringIO) -> None:
    """Lines and values that either parser refuses leave reasons and counts behind; their bytes are in the rejects."""
    workspace = new_workspace(columns={"n": "long", "day": "date"})
    lines = [
        f'{{"n": "{CARD}", "day": "{CARD}"}}',
        f'{{"n": "{CARD}"',
        f'{{"n": "{CARD}", "o": {{"{TOO_LONG}": 1}}}}',
        CARD,
        f'{{"n": 1, "card": "{CARD}"}}',
    ]
    data = "\n".join(lines).encode()
    compacted = workspace.compact({"plain": data, "packed.gz": gzip.compress(data), "cut.gz": gzip.compress(data)[:-9]})
    assert any(CARD.encode() in row["raw"] for row in compacted.rejects)
    layout = workspace.app.layout
    uris = [info.uri for info in workspace.app.store.list(f"{layout.state}/") if info.uri.endswith(".json")]
    assert uris
    for text in (log.getvalue(), *(workspace.app.store.read(uri).decode() for uri in uris)):
        assert CARD not in text


@pytest.mark.parametrize("engine", ["spark"])
def test_what_fails_on_an_executor_is_told_without_its_values(new_workspace: Any, spark: Any) -> None:
    """An unforeseen error of a task says its kind and place; one of a query, its condition."""
    workspace = new_workspace()
    spec = workspace.app.store_spec

    def choke(_store: Any, value: str) -> int:
        return int(value)

    with pytest.raises(EngineFailed) as caught, translated("m"):
        tasks.run_tasks(spark, spec, [CARD], choke, description="choke")
    assert "ValueError in " in str(caught.value)
    assert CARD not in str(caught.value)
    with pytest.raises(EngineFailed) as caught, translated("m"):
        spark.createDataFrame([(CARD,)], "a string").selectExpr("cast(a as int)").collect()
    assert "CAST_INVALID_INPUT" in str(caught.value)
    assert CARD not in str(caught.value)

"""Ranges of topics through the whole job, without brokers: planned, converted and verified."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.core.kafka.ranges import Topic
from compactor.ops.rebuild.scan import RebuildScope
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = Topic("main", "events")

NATIVE.need()


@pytest.fixture
def log() -> MemoryKafka:
    return MemoryKafka()


def ids(root: Path) -> list[Any]:
    files = sorted((root / "o").rglob("*.parquet"))
    return sorted(each for path in files for each in pq.read_table(path)["id"].to_pylist())


def test_rows_of_a_topic(tmp_path: Path, log: MemoryKafka) -> None:
    """With tombstones, gaps and rejects; each counts as its own kind."""
    first, second = log.create(TOPIC, "one", 2)
    first.append(b'{"id": "a"}', None, b"no json")
    first.skip(2)
    second.append(b'{"id":\n"b"}')
    app = kafka_app(tmp_path, log)
    [planned] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["a", "b"]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rows, report.rejected_lines, report.blank_lines) == ([], 2, 1, 3)
    files = app.tracer.trace_manifest(planned.manifest_id).files
    counts = {file.uri: file.kafka for file in files}
    found = counts[f"{TOPIC}/0?from=0&to=5"]
    assert found is not None
    assert (found.tombstones, found.absent) == (1, 2)


def test_lost_rows_are_made_again_from_a_topic_that_has_grown(tmp_path: Path, log: MemoryKafka) -> None:
    """Its end is another one by then, and that of the range is not."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', None, b'{"id": "b"}')
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    partition.append(b'{"id": "c"}')
    next((tmp_path / "o").rglob("*.parquet")).unlink()
    report = app.rebuilder().rebuild(app.rebuild_scanner().scan(RebuildScope()))
    assert (len(report.rebuilt), report.refused, report.discrepancies) == (1, [], [])
    assert ids(tmp_path) == ["a", "b"]


def test_text_of_a_topic(tmp_path: Path, log: MemoryKafka) -> None:
    """The value of a record is a line. One of several lines does not match, rather than becoming another value."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b"GET a", None, b"GET b\nGET c", b"PUT d\n", b"x")
    text = {"allowed_prefixes": ["kafka://main"], "format": "grok", "grok": {"pattern": "^%{WORD:verb} %{DATA:id}$"}}
    app = kafka_app(tmp_path, log, input=text)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    assert ids(tmp_path) == ["a", "d"]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rejects_by_reason, report.blank_lines) == ([], {"no_match": 2}, 1)


def test_what_compaction_removes_later_is_no_discrepancy(tmp_path: Path, log: MemoryKafka) -> None:
    """The range can no longer be compared, as a deleted file cannot; its rows stay."""
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', b'{"id": "b"}')
    app = kafka_app(tmp_path, log)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.inputs_compared, report.inputs_gone) == ([], 1, 0)
    del partition.records[0]
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.inputs_compared, report.inputs_gone) == ([], 0, 1)
    assert ids(tmp_path) == ["a", "b"]

"""Erasure of records that came from a topic, out of rows in partitions."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from compactor.core.kafka.ranges import Topic
from compactor.wiring.job.forgetting import forgetter
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = Topic("main", "events")

NATIVE.need()


def rows(root: Path) -> list[tuple[str, Any]]:
    """The folder and the id of each row."""
    files = sorted((root / "o").rglob("*.parquet"))
    return [(path.parent.name, each) for path in files for each in pq.read_table(path)["id"].to_pylist()]


def test_the_rows_go_and_the_range_is_named(tmp_path: Path) -> None:
    """The other rows stay in their partitions, and the range adds up; what the topic has is not the compactor's."""
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(
        b'{"id": "a", "kind": "x"}', b'{"id": "b", "kind": "x"}', None, b'{"id": "a", "kind": "y"}', b"a a"
    )
    app = kafka_app(tmp_path, log, output={"partition_by": ["identity(kind)"]})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    assert rows(tmp_path) == [("kind_value=x", "a"), ("kind_value=x", "b"), ("kind_value=y", "a")]
    eraser = forgetter(app, key="id", values=frozenset(["a"]), inputs="delete", by="privacy")
    report = eraser.forget(eraser.scanner.scan(), dry_run=False)
    [forgotten], [held] = report.forgotten, report.inputs
    assert report.refused == []
    assert (forgotten.rows, forgotten.rejected_lines) == (2, 1)
    assert (held.uri, held.deleted, "in the topic" in held.why) == (f"{TOPIC}/0?from=0&to=5", False, True)
    assert rows(tmp_path) == [("kind_value=x", "b")]
    found = app.verifier(deep=True).verify_all()
    assert (found.discrepancies, found.rows, found.rejected_lines, found.blank_lines) == ([], 1, 0, 1)


def test_the_name_of_a_partition_is_told(tmp_path: Path) -> None:
    """The records of the manifest keep it, so that something is left."""
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "a"}', b'{"id": "b"}')
    app = kafka_app(tmp_path, log, output={"partition_by": ["identity(id)"]})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    eraser = forgetter(app, key="id", values=frozenset(["a"]), inputs="delete", by="privacy")
    [refused] = eraser.forget(eraser.scanner.scan(), dry_run=False).refused
    assert "in the partition of a value" in refused.why

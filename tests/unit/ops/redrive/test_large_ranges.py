"""Ranges that are larger than a job takes: redrives cut them until each part is small enough."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq

from compactor.core.documents.records import FileStatus
from compactor.core.kafka.ports import Sample
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.scan import find_redrivable
from compactor.ops.trace.trace import TraceState
from compactor.wiring.job.app import App
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app

TOPIC = Topic("main", "events")
LIMIT = 20_000
RECORDS = 500

NATIVE.need()


class Misjudged(MemoryKafka):
    """Brokers whose samples are of small records."""

    def samples(self, topic: Topic, starts: Mapping[int, int]) -> dict[int, Sample]:
        return {each: Sample(2.0) for each in starts} if topic in self.topics else {}


def planned(root: Path, *values: bytes) -> tuple[App, MemoryKafka]:
    """A range of these records that a job quarantined."""
    log = Misjudged()
    [partition] = log.create(TOPIC, "one")
    partition.append(*values)
    app = kafka_app(root, log, input={"allowed_prefixes": ["kafka://main"], "max_decompressed_bytes": LIMIT})
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    app.threaded_job(1).run(once=True)
    return app, log


def redriven(app: App) -> int:
    """Redrive all files, and run; returns how many were redriven."""
    report = app.redriver().redrive(find_redrivable(app.state, Scope("files")))
    app.threaded_job(1).run(once=True)
    return sum(each.files for each in report.redriven)


def test_redrives_of_a_range_that_is_too_large_end(tmp_path: Path) -> None:
    """Each record is a row once, under its offset, and verify, also of values, finds nothing."""
    values = [b'{"id": %d, "text": "%s"}' % (number, b"x" * 1000) for number in range(RECORDS)]
    app, _ = planned(tmp_path, *values)
    [quarantined] = app.verifier().verify_all().quarantined_files
    assert (quarantined.status, KafkaRange.parse(quarantined.uri).offsets) == (FileStatus.TOO_LARGE, RECORDS)
    rounds = 0
    while rounds < 9 and redriven(app):
        rounds += 1
    assert rounds == 2
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.needs_operator, report.rows) == ([], False, RECORDS)
    rows = [pq.read_table(path).to_pylist() for path in sorted((tmp_path / "o").rglob("*.parquet"))]
    assert sorted(int(row["id"]) for table in rows for row in table) == list(range(RECORDS))
    for offset in (0, 7, 8, 63, RECORDS - 1):
        found = app.tracer.trace(f"{TOPIC}/0?offset={offset}")
        part = KafkaRange.parse(found.uri)
        assert (part.has(offset), found.manifest_id[-3:], found.state) == (True, "-r2", TraceState.DONE)
        assert f"is line {offset - part.first + 1} of this range" in found.message


def test_a_record_that_is_too_large_by_itself_stays_alone(tmp_path: Path) -> None:
    """It is redriven as it is, for a job that takes more; all beside it is rows."""
    app, _ = planned(tmp_path, *[b'{"id": 1}'] * 40, b'{"text": "%s"}' % (b"x" * LIMIT), *[b'{"id": 2}'] * 40)
    for _ in range(4):
        redriven(app)
    report = app.verifier().verify_all()
    assert (report.discrepancies, report.rows) == ([], 80)
    assert [each.uri for each in report.quarantined_files if not each.is_settled] == [f"{TOPIC}/0?from=40&to=41"]


def test_a_large_range_that_retention_removed_some_of(tmp_path: Path) -> None:
    """What is gone is a part of its own, under its exact offsets; what is left is cut."""
    app, log = planned(tmp_path, *[b'{"text": "%s"}' % (b"x" * 1000)] * 100)
    log.topics[TOPIC][1][0].remove_before(10)
    redriven(app)
    report = app.verifier(deep=True).verify_all()
    assert (report.discrepancies, report.rows) == ([], 90)
    assert [each.uri for each in report.quarantined_files if not each.is_settled] == [f"{TOPIC}/0?from=0&to=10"]

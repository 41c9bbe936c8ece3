"""A day of work as it stands in a ledger, without the work: for reports. Deterministic, and in memory."""

import io
import math
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.cli.commands.report import make_report
from compactor.core.documents.changes import Commit, DeadLetter, StagedFile
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.layout import ManifestKey
from compactor.cost.prices import PricedJob
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ops.report.period import Period
from compactor.ops.report.report import Report
from tests.support.attempt_failures import attempt_failure
from tests.support.harness import Harness

MIDNIGHT = datetime(2025, 12, 21, tzinfo=UTC)
DAY = "2025-12-21"
WHOLE_DAY = Period(MIDNIGHT, MIDNIGHT + timedelta(days=1))
TEN_WORKERS = PricedJob("G.2X", 10, "6.0")
MIB = 1024 * 1024
REASONS = ("invalid_json", "invalid_utf8", "not_an_object", "line_too_long")
RAW = {
    "invalid_json": b'{"id": 17, "city": "K\xc3\xb6ln", "note": <script>alert("x")</script>, "amount": 12.50, "n": 1',
    "invalid_utf8": b'{"id": 18, "city": "K\xf6ln"}',
    "not_an_object": b'["id", 19]',
    "line_too_long": b'{"id": 20, "blob": "' + b"x" * 400,
}


class ReportDay:
    """Writes the records that manifests would leave.

    Args:
        harness: Where they are; its clock is moved.
        seed: Of all that is left to chance.
        files: Of each manifest.
    """

    def __init__(self, harness: Harness, *, seed: int = 1, files: int = 6) -> None:
        self.harness = harness
        self.layout = harness.layout
        self.ledger = harness.ledger
        self.chance = random.Random(seed)
        self.files = files

    def fill(self, manifests: int = 480) -> None:
        """A day with a quiet night, a busy afternoon, a stop of two hours, and things that went wrong."""
        self._columns(["id", "city", "amount", "sent_at"], at=0.4)
        for number in range(manifests):
            hour = 24 * (number + 0.5) / manifests
            if 9 <= hour < 11:  # the job was down; what had waited comes right after
                hour, wait = 11 + (hour - 9) / 2, 60 * 60 * (11 - hour) + 400
            else:
                wait = self.chance.uniform(60, 240)
            load = 0.55 - 0.4 * math.cos((hour - 3) / 24 * 2 * math.pi)
            self.commit(f"m-{number:06d}", hour, wait_seconds=wait, load=load)
        self._columns(["coupon_code"], at=8.2)
        self._columns(["loyalty_tier", "app_version"], at=15.7)
        self.dead_letter(
            "broken-0001", 5.2, "not_json", "s3://lake/manifests/broken-0001.json: unexpected character: line 1"
        )
        self.dead_letter(
            "empty-0002", 13.9, "no_files", "s3://lake/manifests/empty-0002.json: files is [], expected one"
        )
        self.fail_attempt("m-000200", 10.9)
        self.harness.clock.set(MIDNIGHT + timedelta(hours=24, seconds=30))

    def commit(
        self,
        manifest_id: str,
        hour: float,
        *,
        wait_seconds: float,
        load: float,
        bad: float = 0.05,
        uri: str = "s3://lake/raw/{id}-{number}.ndjson",
    ) -> Commit:
        """A manifest that was committed."""
        chance = self.chance
        done_at = MIDNIGHT + timedelta(hours=hour)
        seconds = chance.lognormvariate(math.log(60 + 90 * load), 0.25)
        started_at = done_at - timedelta(seconds=seconds)
        arrived = [started_at - timedelta(seconds=wait_seconds * chance.uniform(0.3, 1.2)) for _ in range(self.files)]
        uris = [uri.format(id=manifest_id, number=number) for number in range(self.files)]
        reports = [self._report(each, load, bad) for each in uris]
        outputs = self._outputs(manifest_id, sum(report.size_bytes for report in reports))
        rejects = self._rejects(manifest_id, reports)
        self.harness.clock.set(started_at)
        manifest = Manifest(
            manifest_id=manifest_id,
            date=DAY,
            created_at=started_at - timedelta(seconds=20),
            files=tuple(ManifestFile(uri=each, event_time=at) for each, at in zip(uris, arrived, strict=True)),
        )
        self.ledger.accept(
            Accepted(manifest_id=manifest_id, kind="manifest", date=DAY, accepted_at=started_at, manifest=manifest)
        )
        attempt = self.ledger.begin(ManifestKey(DAY, manifest_id), after=0, alone=False)
        commit = Commit(
            manifest_id=manifest_id,
            date=DAY,
            attempt=attempt.number,
            run_id="run",
            engine="native",
            schema_version=1,
            outputs=outputs,
            rejects=rejects,
            files=reports,
            max_line_bytes=1 << 24,
            max_decompressed_bytes=1 << 33,
            started_at=started_at,
            decided_at=done_at - timedelta(seconds=2),
        )
        self.ledger.decide(commit)
        self.harness.clock.set(done_at)
        self.ledger.finish(ManifestKey(DAY, manifest_id))
        return commit

    def _report(self, uri: str, load: float, bad: float) -> FileReport:
        chance = self.chance
        if chance.random() < 0.0015:
            detail = "no such object; expected the file from the manifest"
            return FileReport(uri=uri, status=FileStatus.MISSING, detail=detail)
        size_bytes = int(load * chance.uniform(150, 210) * MIB)
        lines = size_bytes // 700
        rejects = {}
        if chance.random() < bad:
            rejects = {chance.choices(REASONS, (8, 3, 2, 1))[0]: chance.randint(1, 900)}
        rejected = sum(rejects.values())
        return FileReport(
            uri=uri,
            status=FileStatus.COMPACTED,
            size_bytes=size_bytes,
            decoded_bytes=size_bytes,
            lines=lines,
            blank_lines=3,
            records=lines - rejected - 3,
            rejected_lines=rejected,
            rejects=rejects,
            reject_rows=rejected,
        )

    def _outputs(self, manifest_id: str, input_bytes: int) -> list[StagedFile]:
        output_bytes = input_bytes * self.chance.gauss(0.24, 0.012)
        count = max(1, round(output_bytes / (128 * MIB)))
        sizes = [int(output_bytes / count * self.chance.gauss(1, 0.07)) for _ in range(count)]
        return [
            StagedFile(
                staged="", final=self.layout.output_file(ManifestKey(DAY, manifest_id), part), rows=1, size_bytes=size
            )
            for part, size in enumerate(sizes)
        ]

    def _rejects(self, manifest_id: str, reports: list[FileReport]) -> list[StagedFile]:
        rows = [
            (manifest_id, report.uri, 7 + number, 0, reason, RAW.get(reason, b"what cannot be read"), None)
            for report in reports
            for reason, lines in report.rejects.items()
            for number in range(min(lines, 5))
        ]
        if not rows:
            return []
        columns = [
            pa.array(list(column), field.type)
            for column, field in zip(zip(*rows, strict=True), REJECTS_SCHEMA, strict=True)
        ]
        target = io.BytesIO()
        pq.write_table(pa.table(columns, schema=REJECTS_SCHEMA), target)
        uri = self.layout.rejects_file(ManifestKey(DAY, manifest_id), 0)
        self.harness.store.put(uri, target.getvalue())
        return [StagedFile(staged="", final=uri, rows=len(rows), size_bytes=len(target.getvalue()))]

    def dead_letter(self, manifest_id: str, hour: float, reason: str, message: str) -> None:
        """A manifest that became a dead letter."""
        at = MIDNIGHT + timedelta(hours=hour)
        self.harness.clock.set(at)
        source_uri = self.layout.manifest(manifest_id)
        self.ledger.accept(
            Accepted(manifest_id=manifest_id, kind="refused", date=DAY, source_uri=source_uri, accepted_at=at)
        )
        letter = DeadLetter(
            manifest_id=manifest_id,
            date=DAY,
            reason=reason,
            message=message,
            source_uri=source_uri,
            run_id="run",
            decided_at=at,
        )
        self.ledger.decide(letter)
        self.harness.store.put(self.layout.failure_reason(manifest_id), letter.model_dump_json().encode())
        self.ledger.finish(ManifestKey(DAY, manifest_id))

    def fail_attempt(self, manifest_id: str, hour: float) -> None:
        """An attempt that ended without an outcome."""
        self.harness.clock.set(MIDNIGHT + timedelta(hours=hour))
        attempt = self.ledger.begin(ManifestKey(DAY, manifest_id), after=1, alone=False)
        failure = attempt_failure(attempt, "StoreUnavailable: throttled", self.harness.clock.now())
        self.ledger.fail(ManifestKey(DAY, manifest_id), failure)

    def _columns(self, keys: list[str], *, at: float) -> None:
        self.harness.clock.set(MIDNIGHT + timedelta(hours=at))
        self.harness.app().registry.covering({key: f"s3://lake/raw/{key}-first.ndjson" for key in keys}, "m-000001")


def report_on(harness: Harness, period: Period = WHOLE_DAY, *, with_samples: bool = True) -> Report:
    """What the command would make of a period."""
    return make_report(harness.app(), period, TEN_WORKERS, is_job_named=False, with_samples=with_samples)

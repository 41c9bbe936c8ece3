"""A job whose places are all in S3, behind a proxy that spoils calls, and what must hold of its lines at the end."""

import io
import random
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq

from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import CompactorError, OperatorError, StuckError
from compactor.core.layout import KEEP_MARKER, base_name
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import parse_settings
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from tests.faults.s3_server import REGION, S3Server
from tests.support.engines import DEFAULT, PLAIN, engine_without_spark
from tests.support.memory_store import ManualClock

BUCKET = "lake"
DAY = "2025-12-21"
RESTARTS = 6
"""So often a supervisor starts a job again that ended with exit code 1."""

ROWS_PER_FILE = 5
TARGET_FILE_BYTES = 700
LARGE_FILE_BYTES = 128 * 1024 * 1024
SAMPLE_BYTES = 75
"""A first file is sample enough, so that a later one brings a key that the first round knows no column for."""


def uploads(store: S3Store, root: str) -> list[object]:
    """The unfinished uploads below a prefix."""
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    found: list[object] = store.client.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
    return found


@dataclass
class S3Lake:
    """One job's places below a prefix of their own.

    Attributes:
        server: Reached without faults: what is put in and looked at goes this way.
        root: The prefix, as `s3://bucket/name`.
        engine: Of its jobs.
        target_file_bytes: Of its jobs' output, where the engine is the native one.
        lines: Ids of the good lines that were put in.
        bad_lines: The bad ones: their file and their number.
    """

    server: S3Server
    root: str
    engine: str = DEFAULT
    target_file_bytes: int = TARGET_FILE_BYTES
    lines: Counter[str] = field(default_factory=Counter)
    bad_lines: Counter[tuple[str, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.store = S3Store(self.server.client())

    def settings(self, endpoint_url: str) -> dict[str, dict[str, object]]:
        """The settings of a job that goes through this endpoint."""
        return {
            "paths": {name: f"{self.root}/{name}" for name in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [f"{self.root}/input"]},
            "aws": {"region": REGION, "endpoint_url": endpoint_url, "timeout_seconds": 2},
            "schema": {"metadata_columns": ["_source_file", "_manifest_id"]},
            "stream": {"trigger_interval_seconds": 1},
            "metrics": {"sink": "none"},
            "convert": {"engine": "spark" if self.engine == PLAIN else self.engine},
            "spark": {"conf": {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.ui.enabled": False}},
        }

    def app(self, endpoint_url: str, store: S3Store) -> App:
        """The parts of a job on a given store."""
        return App(parse_settings(self.settings(endpoint_url)), store=store)

    def put_file(self, name: str, *, good: int, bad: int = 0, more: Callable[[], str] = str) -> ManifestFile:
        """Write an input file whose bad lines come after its good ones.

        Args:
            name: A part of its own.
            good: How many records.
            bad: How many rejects.
            more: Makes further keys for each record.
        """
        uri = f"{self.root}/input/{DAY}-{name}.ndjson"
        ids = [f"{name}-{number}" for number in range(good)]
        lines = [*(f'{{"id":"{each}","n":1.10{more()}}}' for each in ids), *["no json"] * bad, ""]
        self.lines.update(ids)
        self.bad_lines.update((uri, good + number) for number in range(1, bad + 1))
        self.store.put(uri, "\n".join(lines).encode())
        info = self.store.stat(uri)
        assert info is not None
        return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag)

    def deliver(self, manifest_id: str, files: Sequence[ManifestFile]) -> None:
        """Write a manifest."""
        manifest = Manifest(manifest_id=manifest_id, date=DAY, created_at="2025-12-21T10:00:00Z", files=tuple(files))
        self.store.put(f"{self.root}/manifests/{manifest_id}.json", manifest.to_json())

    def fill(self) -> None:
        """What takes every path: a clean file, one with rejects and a late key, some output files, a bad manifest."""
        self.deliver("good", [self.put_file("clean", good=7), self._with_a_late_key()])
        self.store.put(f"{self.root}/manifests/broken.json", b'{"version": 7}')

    def fill_with_one_large(self, kib: int) -> None:
        """What makes one output file of three quarters of this size, which is sent and copied in parts."""
        self.target_file_bytes = LARGE_FILE_BYTES
        chance = random.Random(self.root)

        def more() -> str:
            return f',"v":"{b64encode(chance.randbytes(750)).decode()}"'

        self.deliver("good", [self.put_file("large", good=kib, bad=1, more=more)])
        self.store.put(f"{self.root}/manifests/broken.json", b'{"version": 7}')

    def _with_a_late_key(self) -> ManifestFile:
        return self.put_file("flawed", good=2, bad=2, more=lambda: ',"late":"x"')

    def run_job(self, endpoint_url: str, *, attempts: int, timeout_seconds: float) -> int:
        """Run the job without Spark until it ends well, as a supervisor would.

        Args:
            endpoint_url: Where it finds S3.
            attempts: How often its client sends a request at most.
            timeout_seconds: How long its client waits.

        Returns:
            How often it had to be started again.

        Raises:
            CompactorError: It does not end well, or a person must act.
        """
        client = self.server.client(endpoint_url, attempts=attempts, timeout_seconds=timeout_seconds)
        for restarts in range(RESTARTS + 1):
            app = self.app(endpoint_url, S3Store(client, sleep=lambda _: None))
            service = streaming.service_on(
                app,
                engine_without_spark(
                    self.engine, app, rows_per_file=ROWS_PER_FILE, target_file_bytes=self.target_file_bytes
                ),
                ListedManifests(app.store, app.layout.manifests_folder),
            )
            try:
                report = service.run(once=True)
            except OperatorError:
                raise
            except CompactorError:
                if restarts == RESTARTS:
                    raise
                continue
            if report.stuck:
                raise StuckError("; ".join(report.stuck.values()))
            if not report.failures:
                return restarts
        raise CompactorError(f"{self.root}: not done after {RESTARTS} restarts")

    def sweep(self) -> None:
        """Delete old staging, as a job does two days later."""
        clock = ManualClock(datetime.now(UTC) + timedelta(days=2))
        operating.cleaner(App(parse_settings(self.settings(self.server.url)), store=self.store, clock=clock)).sweep()

    def lost_and_doubled(self) -> tuple[int, int]:
        """How many lines, good and bad, are missing and how many are there once too often."""
        rows = Counter(row["id"] for row in self._rows("output/"))
        rejects = Counter((row["source_uri"], row["line_number"]) for row in self._rows("state/rejects/"))
        lost = (self.lines - rows).total() + (self.bad_lines - rejects).total()
        doubled = (rows - self.lines).total() + (rejects - self.bad_lines).total()
        return lost, doubled

    def _rows(self, folder: str) -> list[dict[str, object]]:
        found = [info.uri for info in self.store.list(f"{self.root}/{folder}")]
        return [row for uri in found for row in pq.read_table(io.BytesIO(self.store.read(uri))).to_pylist()]

    def dead_letters(self) -> list[str]:
        """The manifests that became dead letters."""
        names = [base_name(info.uri) for info in self.store.list(f"{self.root}/state/failed/")]
        return sorted(name.removesuffix(".reason.json") for name in names if name.endswith(".reason.json"))

    def left_over(self) -> list[str]:
        """What a job that is through should not have left: manifests to do, open markers, staging."""
        places = [f"{self.root}/{name}/" for name in ("manifests", "state/open", "state/staging")]
        return [info.uri for place in places for info in self.store.list(place) if base_name(info.uri) != KEEP_MARKER]

    def uploads(self) -> list[object]:
        """The unfinished uploads of its jobs."""
        return uploads(self.store, self.root + "/")

    def verification(self) -> VerifyResult:
        """What `verify --deep` says."""
        return operating.verifier(self.app(self.server.url, self.store), deep=True).verify_all()

    def assert_exact(self) -> None:
        """Every line is where it belongs, once; only the bad manifest is a dead letter; nothing is left lying about."""
        found = self.lost_and_doubled(), self.dead_letters(), self.left_over()
        assert found == ((0, 0), ["broken"], []), f"lost and doubled, dead letters, left over: {found}"
        report = self.verification()
        assert (report.discrepancies, report.unfinished) == ([], 0), report

"""One Spark session for all tests of the engines, and scenes: folders with an app that works on them."""

import io
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from compactor.adapters.aws.local_setup import make_buckets
from compactor.adapters.local.native_kernel import is_installed
from compactor.adapters.local.thread_workers import ThreadBinWorkers
from compactor.adapters.spark.session import close_session, open_session
from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Commit, DeadLetter, FileReport
from compactor.engines.engine import Engine
from compactor.job.batches import BatchResult
from compactor.ops.doctor.java import java_fault
from compactor.ops.verify.verifier import VerifyReport
from compactor.settings.settings import parse_settings
from compactor.settings.spark_conf import spark_properties
from compactor.wiring.app import App
from tests.support.harness import commit_of_ratio

REGION = "eu-west-1"
MASTER = "local[2]"
DAY = "2025-12-21"


@pytest.fixture(scope="session")
def aws_endpoint() -> Iterator[str]:
    """A local stand-in for AWS. It stands before Spark starts, for a session knows one S3 only."""
    # A log line for every request would bury the output of a failed test.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.delenv("AWS_PROFILE", raising=False)
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture(scope="session")
def spark(aws_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that every app of these tests joins."""
    assert java_fault(os.environ) is None, java_fault(os.environ)
    conf = {
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "2",
    }
    properties = spark_properties(master=MASTER, conf=conf, region=REGION, endpoint_url=aws_endpoint, uses_s3=True)
    session = open_session(MASTER, properties, uses_s3=True)
    yield session
    close_session()


@dataclass(frozen=True)
class Compacted:
    """A manifest that was committed, and what it left.

    Attributes:
        rows: As Parquet holds them, in no order.
        records: The same by JSON key: what is not null.
        rejects: In the order of files and lines.
    """

    commit: Commit
    rows: list[dict[str, Any]]
    records: list[dict[str, Any]]
    rejects: list[dict[str, Any]]

    def by(self, key: str) -> dict[str, dict[str, Any]]:
        """The records by one of their values, which must be unique."""
        found = {record[key]: record for record in self.records}
        assert len(found) == len(self.records)
        return found

    def report(self, name: str) -> FileReport:
        """The report of the file whose URI ends like this."""
        (report,) = [report for report in self.commit.files if report.uri.endswith(f"/{name}")]
        return report


@dataclass(frozen=True)
class Scene:
    """Empty folders for input, manifests, output and state, and an app on them."""

    app: App
    raw: str
    engine_name: str

    def engine(self) -> Engine:
        """The Spark engine, or the native one without Spark around it."""
        if self.engine_name == "native":
            return self.app.native_engine(ThreadBinWorkers(self.app.store))
        return self.app.engine()

    def write(self, name: str, data: bytes) -> str:
        """Put one input file; returns its URI."""
        self.app.store.put(self.raw + name, data)
        return self.raw + name

    def deliver(self, manifest_id: str, files: Sequence[str | ManifestFile], name: str | None = None) -> str:
        """Put a manifest of these files; returns its URI."""
        manifest = Manifest(
            manifest_id=manifest_id,
            date=DAY,
            created_at=self.app.clock.now(),
            files=tuple(ManifestFile(uri=file) if isinstance(file, str) else file for file in files),
        )
        uri = f"{self.app.layout.manifests_folder}{name or manifest_id + '.json'}"
        self.app.store.put(uri, manifest.to_json())
        return uri

    def run(self, *uris: str) -> BatchResult:
        """Work through these manifests as one micro-batch."""
        return self.app.batch_runner(self.engine()).run(uris)

    def compact(self, files: Mapping[str, bytes] | Sequence[str | ManifestFile], manifest_id: str = "m") -> Compacted:
        """Compact files, given by name with their bytes or as they are; fails unless they are committed exactly."""
        named = [self.write(*file) for file in files.items()] if isinstance(files, Mapping) else files
        batch = self.run(self.deliver(manifest_id, named))
        assert batch.failures == {}
        self.check()
        return self.compacted(manifest_id)

    def outcome(self, manifest_id: str) -> Commit | DeadLetter:
        return self.app.ledger.outcome(ManifestKey(DAY, manifest_id))

    def compacted(self, manifest_id: str = "m") -> Compacted:
        commit = self.outcome(manifest_id)
        assert isinstance(commit, Commit), commit
        columns = self.app.registry.version(commit.schema_version).columns
        rows = [row for file in commit.outputs for row in self.parquet_rows(file.final)]
        records = [
            {column.key: row[column.name] for column in columns if column.key is not None}
            | {key: value for column in columns if column.key is None for key, value in row[column.name] or ()}
            for row in rows
        ]
        records = [{key: value for key, value in record.items() if value is not None} for record in records]
        rejects = [row for file in commit.rejects for row in self.parquet_rows(file.final)]
        rejects.sort(key=lambda row: (row["source_uri"], row["line_number"], row["byte_offset"]))
        return Compacted(commit, rows, records, rejects)

    def parquet_rows(self, uri: str) -> list[dict[str, Any]]:
        """The rows of one file, read without any of the compactor's own reading."""
        return pq.read_table(io.BytesIO(self.app.store.read(uri))).to_pylist()

    def check(self) -> VerifyReport:
        """Compare ledger, outputs, rejects and inputs, value by value."""
        app = self.app
        report = app.verifier.verify(app.ledger.manifests(), whole_dates=True, deep_check=app.deep_check)
        assert report.discrepancies == []
        assert list(app.store.list(app.layout.staging_folder)) == []
        return report


NewScene = Callable[..., Scene]


@pytest.fixture(params=["spark", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    """The engine that scenes use. A module that is about one of them has a fixture of its own in place of this one."""
    if request.param == "native" and not is_installed():
        pytest.skip("the native kernel is not installed: no cargo")
    return str(request.param)


@pytest.fixture
def new_scene(spark: Any, tmp_path: Any, engine: str) -> NewScene:  # noqa: ARG001 - Spark is up first
    """Makes scenes on the local disk: `on_crash_point`, the ratio learned before, and `columns`.

    The last are those of a schema file: keys, which are names as well, with their types.
    """

    def make(
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        ratio: float | None = 1.0,
        columns: Mapping[str, str] | None = None,
        **sections: dict[str, Any],
    ) -> Scene:
        root = tmp_path / uuid.uuid4().hex[:8]
        if columns is not None:
            root.mkdir()
            (root / "columns.toml").write_text(schema_file(columns))
            sections["schema"] = {**sections.get("schema", {}), "file": f"{root}/columns.toml"}
        return _scene(str(root), engine, on_crash_point, ratio, sections)

    return make


@pytest.fixture
def new_s3_scene(spark: Any, aws_endpoint: str, engine: str) -> NewScene:  # noqa: ARG001 - Spark is up first
    """Makes scenes in a bucket of their own."""

    def make(
        *, on_crash_point: OnCrashPoint = ignore_crash_point, ratio: float | None = 1.0, **sections: dict[str, Any]
    ) -> Scene:
        bucket = f"bucket-{uuid.uuid4().hex}"
        make_buckets([bucket], region=REGION, endpoint_url=aws_endpoint)
        aws = {"region": REGION, "endpoint_url": aws_endpoint}
        return _scene(f"s3://{bucket}", engine, on_crash_point, ratio, {"aws": aws, **sections})

    return make


@pytest.fixture
def scene(new_scene: NewScene) -> Scene:
    """A scene with the default settings."""
    return new_scene()


def _scene(
    root: str, engine: str, on_crash_point: OnCrashPoint, ratio: float | None, sections: Mapping[str, Mapping[str, Any]]
) -> Scene:
    defaults: dict[str, dict[str, Any]] = {
        "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{root}/raw"]},
        "stream": {"trigger_interval_seconds": 0.2},
        "metrics": {"sink": "none"},
        "convert": {"engine": engine},
        "spark": {"master": MASTER},
    }
    document = {name: {**defaults.get(name, {}), **sections.get(name, {})} for name in {**defaults, **sections}}
    app = App(parse_settings(document), on_crash_point=on_crash_point)
    if ratio is not None:
        app.ledger.remember(commit_of_ratio(ratio))
    return Scene(app, f"{root}/raw/", engine)


def schema_file(columns: Mapping[str, str]) -> str:
    """A schema file of keys with their types; a timestamp may be followed by its epoch."""
    tables = []
    for key, kind in columns.items():
        name, _, epoch = kind.partition(" ")
        tables.append(f'[[columns]]\nname = {json.dumps(key)}\ntype = "{name}"\n')
        tables += [f'epoch = "{epoch}"\n'] if epoch else []
    return "".join(tables)

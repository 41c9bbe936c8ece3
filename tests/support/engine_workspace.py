"""Empty folders with an app on them: for tests that compact files with a real engine and read what came of them."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.crash_points import OnCrashPoint
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import FileReport
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Engine
from compactor.job.results import Results
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import parse_settings
from compactor.wiring import engines, operating, streaming
from compactor.wiring.app import App
from tests.support.harness import commit_of_ratio

MASTER = "local[2]"
DAY = "2025-12-21"


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
        """The records by one of their values; it must tell them apart."""
        found = {record[key]: record for record in self.records}
        assert len(found) == len(self.records)
        return found

    def report(self, name: str) -> FileReport:
        """The report of the file whose URI ends so."""
        (report,) = [report for report in self.commit.files if report.uri.endswith(f"/{name}")]
        return report


@dataclass(frozen=True)
class EngineWorkspace:
    """Empty folders for input, manifests, output and state, and an app on them.

    Attributes:
        raw: The folder of input files; it ends with `/`.
        engine_name: `spark` or `native`.
    """

    app: App
    raw: str
    engine_name: str

    def engine(self) -> Engine:
        """The Spark engine, or the native one without Spark around it."""
        if self.engine_name == "native":
            return engines.native_engine(self.app, ThreadBinWorkers(self.app.store))
        return engines.engine(self.app)

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

    def run(self, *uris: str) -> Results:
        """Work through these manifests as one micro-batch."""
        return streaming.scheduler(self.app, self.engine()).run(uris)

    def compact(self, files: Mapping[str, bytes] | Sequence[str | ManifestFile], manifest_id: str = "m") -> Compacted:
        """Compact files, given by name with their bytes or as they are; fails unless they are committed and add up."""
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
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(self.app.store.read(uri))).to_pylist()
        return rows

    def check(self) -> VerifyResult:
        """Compare ledger, outputs, rejects and inputs, value by value."""
        app = self.app
        report = operating.verifier(app, deep=True).verify_all()
        assert report.discrepancies == []
        assert list(app.store.list(app.layout.staging_folder)) == []
        return report


NewWorkspace = Callable[..., EngineWorkspace]


def engine_workspace(
    root: str, engine: str, on_crash_point: OnCrashPoint, ratio: float | None, sections: Mapping[str, Mapping[str, Any]]
) -> EngineWorkspace:
    """A workspace below a folder or a bucket.

    Args:
        root: The URI of the folder, without a slash at its end.
        engine: `spark` or `native`.
        on_crash_point: Called at each crash point.
        ratio: What an earlier commit has taught about output for input; None if there was none.
        sections: Settings, added to those that tests need or in place of them.
    """
    defaults: dict[str, dict[str, Any]] = {
        "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{root}/raw"]},
        "stream": {"trigger_interval_seconds": 0.2},
        "schema": {"metadata_columns": []},
        "metrics": {"sink": "none"},
        "convert": {"engine": engine},
        "spark": {"conf": {"spark.master": MASTER}},
    }
    document = {name: {**defaults.get(name, {}), **sections.get(name, {})} for name in {**defaults, **sections}}
    app = App(parse_settings(document), on_crash_point=on_crash_point)
    if ratio is not None:
        app.ledger.remember(commit_of_ratio(ratio))
    return EngineWorkspace(app, f"{root}/raw/", engine)


def schema_file(columns: Mapping[str, str]) -> str:
    """A schema file of keys with their types; a timestamp may have its epoch behind it."""
    tables = []
    for key, kind in columns.items():
        name, _, epoch = kind.partition(" ")
        tables.append(f'[[columns]]\nname = {json.dumps(key)}\ntype = "{name}"\n')
        tables += [f'epoch = "{epoch}"\n'] if epoch else []
    return "".join(tables)

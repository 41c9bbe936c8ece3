"""A job in memory: input files, manifests, any number of drivers on the same store, and what must hold at the end."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

import pyarrow.parquet as pq

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import RecentCommit
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import KEEP_MARKER, Layout, base_name, folder
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.engines.engine import Engine, EngineRules
from compactor.job.report import RunReport
from compactor.job.scheduler import Scheduler
from compactor.ledger.ledger import Ledger
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from compactor.ops.verify.report import VerifyResult
from compactor.schema.catalog import CatalogTable
from compactor.settings.settings import LEASE_SECONDS, parse_settings
from compactor.sources.plan import PlannedManifest
from compactor.sources.planner import Planner
from compactor.wiring import operating, planning, streaming
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine
from tests.support.memory_store import ManualClock, MemoryClaims, MemoryMetrics, MemoryStore
from tests.support.memory_table import MemoryTable
from tests.support.recent_commits import recent_commit

FINISH_CHECK_SECONDS = 0.002
"""Runs in memory are over after milliseconds, and would spend half of their time in the pause of other runs."""

DAY = "2026-01-02"
GOOD = b'{"id": "1", "amount": 1.10}\n\n{"id": "2", "late": [1, 2]}\n'
FLAWED = b'{"id": "3"}\nno json\n{"id": "4", "amount": 1e2}\n[5]\n'


class DiedError(BaseException):
    """The driver died: no handler of errors gets to run."""


def dying_at(step: StrEnum, occurrence: int = 1) -> Callable[[StrEnum, str], None]:
    """Dies when a step is reached for the nth time."""
    reached = 0

    def on_crash_point(found: StrEnum, _manifest_id: str) -> None:
        nonlocal reached
        reached += found == step
        if found == step and reached == occurrence:
            raise DiedError

    return on_crash_point


def one_at_a_time(app: App) -> Planner:
    """A planner that writes one manifest after the other, so that its steps come in order."""
    return replace(planning.planner(app), groups_at_once=1)


def written(harness: "Harness", planned: Iterable[PlannedManifest]) -> list[Manifest]:
    """The manifests that a plan wrote and that no job has taken yet."""
    places = [harness.layout.manifest(each.manifest_id) for each in planned if each.manifest_id]
    return [Manifest.model_validate_json(harness.store.read(place)) for place in places]


class Harness:
    """Everything that drivers share.

    Args:
        stream: Settings of the stream.
        schema: Settings of the schema.
        builder: Settings of the builder.
        output: Settings of the output.
        table: Settings of the table sink, which is then in memory.
        reading: Settings of the input.
        in_place: Whether a table's files are written in place; as in a job if None.
        root: The folder of everything.
        staging: Where staging is, if not below the state.
        store: Where everything is, if not in memory.
    """

    def __init__(
        self,
        *,
        stream: Mapping[str, object] | None = None,
        schema: Mapping[str, object] | None = None,
        builder: Mapping[str, object] | None = None,
        output: Mapping[str, object] | None = None,
        reading: Mapping[str, object] | None = None,
        table: Mapping[str, object] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        retry_pause_seconds: float = 0.001,
        in_place: bool | None = None,
        root: str = "/w",
        staging: str = "",
        store: ObjectStore | None = None,
    ) -> None:
        self.root = root
        self.clock = ManualClock(datetime(2026, 1, 2, 12, tzinfo=UTC))
        self.store: ObjectStore = store or MemoryStore(self.clock)
        self.claims = MemoryClaims()
        self.metrics = MemoryMetrics()
        self.settings = parse_settings(
            {
                "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")}
                | {"staging": staging},
                "input": {"allowed_prefixes": [f"{root}/raw"], **(reading or {})},
                "stream": dict(stream or {}),
                "schema": {"metadata_columns": [], **(schema or {})},
                "builder": {} if builder is None else builder,
                "output": dict(output or {}),
                "table": dict(table or {}),
            }
        )
        self.settings = replace(
            self.settings,
            claim_lease_seconds=lease_seconds,
            retry_pause_seconds=retry_pause_seconds,
            in_place=in_place,
        )
        if table is not None:  # the one in memory needs no column of the partition, which a real one does
            self.settings = replace(self.settings, table=self.settings.table.model_copy(update={"name": "lake.events"}))
        self.task_bytes: int | None = None
        self.sink = None if table is None else MemoryTable(exists=lambda uri: self.store.stat(uri) is not None)

    @property
    def layout(self) -> Layout:
        return self.settings.layout()

    @property
    def ledger(self) -> Ledger:
        return self.app().ledger

    def app(
        self,
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        store: ObjectStore | None = None,
        catalog_table: CatalogTable | None = None,
    ) -> App:
        """The parts of a fresh driver."""
        return App(
            self.settings,
            on_crash_point=on_crash_point,
            clock=self.clock,
            store=store or self.store,
            claims=self.claims,
            metrics=self.metrics,
            catalog_table=catalog_table,
            table_catalog=self.sink,
            listing=self._listed,
            seen_file="",
        )

    def _listed(self, source: SourcePlace) -> Iterator[ObjectInfo]:
        return iter(self.store.list(folder(source.folder)))

    def engine(self, store: ObjectStore | None = None, rules: EngineRules | None = None) -> PlainEngine:
        """An engine with the rules of a rebuild, or by the settings."""
        return PlainEngine(
            store or self.store,
            metadata_columns=self.settings.metadata_columns,
            rows_per_file=2,
            reject_limits=Limits.of(self.settings).rejects,
            task_bytes=rules.limits.task_bytes if rules else self.task_bytes,
            formats=rules.formats if rules else Formats(),
        )

    def runner(
        self,
        *,
        engine: Engine | None = None,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        store: ObjectStore | None = None,
    ) -> Scheduler:
        """A fresh driver without its stream."""
        return streaming.scheduler(self.app(on_crash_point=on_crash_point, store=store), engine or self.engine(store))

    def run_once(
        self,
        *,
        engine: Engine | None = None,
        store: ObjectStore | None = None,
        catalog_table: CatalogTable | None = None,
    ) -> RunReport:
        """A fresh driver that does all there is and ends."""
        source = ListedManifests(self.store, self.layout.manifests_folder)
        job = streaming.service_on(
            self.app(store=store, catalog_table=catalog_table), engine or self.engine(store), source
        )
        job.finish_check_seconds = FINISH_CHECK_SECONDS
        return job.run(once=True)

    def file(self, name: str, content: bytes) -> ManifestFile:
        """Write an input file."""
        uri = f"{self.root}/raw/{name}"
        self.store.put(uri, content)
        return self.named(uri)

    def named(self, uri: str) -> ManifestFile:
        """A file as a manifest names it."""
        info = self.store.stat(uri)
        assert info is not None
        return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)

    def manifest(self, manifest_id: str, files: Sequence[ManifestFile]) -> Manifest:
        return Manifest(manifest_id=manifest_id, date=DAY, created_at=self.clock.now(), files=tuple(files))

    def deliver(self, manifest_id: str, *contents: bytes) -> str:
        """Write input files, and a manifest that names them."""
        files = [self.file(f"{manifest_id}-{number}.ndjson", content) for number, content in enumerate(contents)]
        return self.put_manifest(f"{manifest_id}.json", self.manifest(manifest_id, files).to_json())

    def put_manifest(self, name: str, data: bytes) -> str:
        """Write an object into the watched prefix."""
        uri = self.layout.manifests_folder + name
        self.store.put(uri, data)
        return uri

    def waiting(self) -> list[str]:
        """What is in the watched prefix."""
        found = [info.uri for info in self.store.list(self.layout.manifests_folder)]
        return [uri for uri in found if base_name(uri) != KEEP_MARKER]

    def outcome(self, manifest_id: str) -> Commit | DeadLetter:
        accepted = self.ledger.accepted(manifest_id)
        assert accepted is not None
        return self.ledger.outcome(accepted.key)

    def commit(self, manifest_id: str) -> Commit:
        outcome = self.outcome(manifest_id)
        assert isinstance(outcome, Commit), outcome
        return outcome

    def dead_letter(self, manifest_id: str) -> DeadLetter:
        outcome = self.outcome(manifest_id)
        assert isinstance(outcome, DeadLetter), outcome
        return outcome

    def table(self, uri: str) -> list[dict[str, Any]]:
        return [dict(row) for row in rows_of(self.store.read(uri))]

    def output_rows(self) -> Counter[str]:
        """Every row that readers see, without its nulls."""
        rows = [row for info in self.store.list(self.layout.output + "/") for row in self.table(info.uri)]
        return Counter(_shown({key: value for key, value in row.items() if value is not None}) for row in rows)

    def rejects(self) -> Counter[tuple[str, int, bytes]]:
        """Every reject: its file, its line and its bytes."""
        rows = [row for info in self.store.list(self.layout.rejects_folder) for row in self.table(info.uri)]
        return Counter((row["source_uri"], row["line_number"], row["raw"]) for row in rows)

    def verification(self) -> VerifyResult:
        """What `verify --deep` says of everything."""
        return operating.verifier(self.app(), deep=True).verify_all()

    def check_exact(self, uris: Sequence[str] | None = None) -> None:
        """Every line of these input files, or of all, is one row, one reject or blank; and nothing is left lying about.

        Goes by the lines themselves, not by what the ledger says of them.
        """
        rows: Counter[str] = Counter()
        rejects: Counter[tuple[str, int, bytes]] = Counter()
        for uri in [info.uri for info in self.store.list(f"{self.root}/raw/")] if uris is None else uris:
            for number, line in enumerate(self.store.read(uri).split(b"\n"), start=1):
                if line.startswith(b"{"):
                    rows[_shown(_as_text(line))] += 1
                elif line:
                    rejects[uri, number, line] += 1
        assert self.output_rows() == rows
        assert self.rejects() == rejects
        assert self.verification().discrepancies == []
        assert self.waiting() == []
        left = [info.uri for place in ("staging/", "open/") for info in self.store.list(f"{self.root}/state/{place}")]
        assert left == []


@lru_cache(maxsize=100)
def rows_of(data: bytes) -> list[dict[str, Any]]:
    """The rows of a Parquet file, which are not to be changed. The same bytes are looked at again and again."""
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return rows


def _as_text(line: bytes) -> dict[str, str]:
    """The values of a line as the output should hold them; good for the plain lines of these tests."""
    values = json.loads(line, parse_float=str, parse_int=str)
    return {
        key: value if isinstance(value, str) else json.dumps([int(each) for each in value])
        for key, value in values.items()
    }


def _shown(row: Mapping[str, Any]) -> str:
    return json.dumps(dict(row), sort_keys=True)


def counted(harness: Harness, name: str) -> int:
    """How often a metric was emitted as 1."""
    return [values.get(name) for values in harness.metrics.emitted].count(1)


def commit_of_ratio(ratio: float) -> RecentCommit:
    """An earlier commit to learn a size from, so that no sample is converted first: that halves the time of a test."""
    size = 1024 * 1024 * 1024
    decided_at = datetime(2025, 12, 20, tzinfo=UTC)
    return recent_commit(decided_at, decoded_bytes=size, input_bytes=size, output_bytes=int(size * ratio))


def sink_of(harness: Harness) -> MemoryTable:
    """The table of a harness that was made with one."""
    assert harness.sink is not None
    return harness.sink

"""A place in which an attack and its honest neighbours meet one driver."""

import io
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import CompactorError
from compactor.core.layout import KEEP_MARKER, base_name
from compactor.engines.engine import Engine
from compactor.job.results import Result
from compactor.ops.verify.report import Discrepancy
from compactor.settings.settings import parse_settings
from compactor.wiring import engines, operating, streaming
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry
from tests.hostile.attack import Attack, Seen
from tests.hostile.neighbours import Neighbours
from tests.support.harness import commit_of_ratio

DAY = "2026-01-02"
ATTACK = "attack"
FRIEND = "friend.ndjson"
FRIEND_ROWS = 2
_FRIEND_LINES = b'{"id": "friend-0"}\n{"id": "friend-1"}\n'
MASTER = "local[2]"
MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024


class Scene:
    """One run of a driver.

    Args:
        root: An empty folder.
        engine: `native` or `spark`.
        attack: Its settings and its store count even if it does not take place.
        neighbours: The honest manifests.

    Attributes:
        raw: The folder of input files.
    """

    def __init__(self, root: Path, engine: str, attack: Attack, neighbours: Neighbours | None = None) -> None:
        self.root = root
        self.raw = root / "raw"
        self.raw.mkdir(parents=True)
        (root / "manifests").mkdir()
        self.attack = attack
        self.neighbours = neighbours or Neighbours(form=attack.form)
        self._engine_name = engine
        self._ended_at: dict[str, float] = {}
        self._attacked = False
        self._error: BaseException | None = None
        app = App(parse_settings(self._document()))
        store = attack.store(app.store) if attack.store else app.store
        self.app = App(app.settings, store=store, on_result=self._note)
        self.app.ledger.remember(commit_of_ratio(0.25))
        # The honest producers were there before the attacker, and their keys have columns.
        job_registry(self.app).covering(dict.fromkeys(sorted(self.neighbours.keys), "earlier"), "earlier")

    def _document(self) -> dict[str, dict[str, Any]]:
        document: dict[str, dict[str, Any]] = {
            "paths": {place: str(self.root / place) for place in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [str(self.raw)], "max_decompressed_bytes": MAX_DECOMPRESSED_BYTES},
            "stream": {"manifests_in_flight": 2},
            "metrics": {"sink": "none"},
            "convert": {"engine": self._engine_name},
            "spark": {"conf": {"spark.master": MASTER}},
        }
        sections = dict(self.attack.sections)
        if self.attack.columns:
            (self.root / "columns.toml").write_text(self.attack.columns)
            sections["schema"] = {"file": str(self.root / "columns.toml")}
        return {name: {**document.get(name, {}), **sections.get(name, {})} for name in {**document, **sections}}

    # What attacks and neighbours write

    def write(self, name: str, data: bytes) -> str:
        """Write an input file."""
        path = self.raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def named(self, uri: str) -> ManifestFile:
        """A file as an honest manifest names it."""
        info = self.app.store.stat(uri)
        assert info is not None, uri
        return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)

    def deliver(self, manifest_id: str, files: Iterable[ManifestFile], date: str = DAY) -> None:
        """Write a manifest as the builder would."""
        manifest = Manifest(manifest_id=manifest_id, date=date, created_at=self.app.clock.now(), files=tuple(files))
        self.put_manifest(f"{manifest_id}.json", manifest.to_json())

    def deliver_document(self, name: str = ATTACK, **fields: object) -> None:
        """Write a manifest with some fields of its own; without `files` it names one good file."""
        files = [{"uri": self.write(f"{name}-good.ndjson", _FRIEND_LINES)}]
        document = {"version": 1, "manifest_id": name, "date": DAY, "files": files, **fields}
        self.put_manifest(f"{name}.json", orjson.dumps(document))

    def put_manifest(self, name: str | bytes, data: bytes) -> None:
        """Put any bytes under any name into the watched prefix."""
        text = name if isinstance(name, str) else name.decode(errors="surrogateescape")
        path = self.root / "manifests" / text
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def deliver_attack(self, uris: Sequence[str], files: Sequence[ManifestFile] = ()) -> None:
        """Deliver files of the attacker, as they are, in one manifest with a good one."""
        friend = self.named(self.write(FRIEND, _FRIEND_LINES))
        self.deliver(ATTACK, [*(ManifestFile(uri=uri) for uri in uris), *files, friend])

    def let_neighbours_in(self) -> None:
        """Deliver the honest manifests."""
        for manifest_id in self.neighbours.ids():
            files = [self.named(self.write(name, data)) for name, data in self.neighbours.files(manifest_id)]
            self.deliver(manifest_id, files)

    def let_attack_in(self) -> None:
        """Deliver the attack."""
        self.attack.make(self)
        self._attacked = True

    # The run

    def run(self) -> float:
        """Run one driver until everything is done; returns the seconds until the last neighbour was."""
        source = ListedManifests(self.app.store, self.app.layout.manifests_folder, poll_seconds=0.05)
        service = streaming.service_on(self.app, self._engine(), source)
        started = time.monotonic()
        try:
            service.run(once=True)
        except CompactorError as exc:
            self._error = exc
        ends = [self._ended_at.get(manifest_id) for manifest_id in self.neighbours.ids()]
        return max(time.monotonic() if end is None else end for end in ends) - started

    def _engine(self) -> Engine:
        native = self._engine_name == "native"
        engine = (
            engines.native_engine(self.app, ThreadBinWorkers(self.app.store)) if native else engines.engine(self.app)
        )
        return self.attack.engine(engine) if self.attack.engine else engine

    def _note(self, result: Result) -> None:
        """Note when a manifest ended; called in the thread of its batch."""
        self._ended_at.setdefault(result.manifest_id, time.monotonic())

    # What came of it

    def faults(self) -> list[str]:
        """What is wrong: neighbours that were harmed, and an attack that did not end as expected."""
        found = [fault for manifest_id in self.neighbours.ids() for fault in self._harm(manifest_id)]
        if self._attacked:
            seen = self.seen()
            has_ended = not (seen.stuck or seen.retrying or seen.discrepancies)
            if not has_ended if self.attack.expected is None else seen != self.attack.expected:
                found.append(f"expected {self.attack.expected or 'outcomes alone'}, found {seen}")
            if self.attack.also is not None and (fault := self.attack.also(self)):
                found.append(fault)
        staged = [info.uri for info in self.app.store.list(self.app.layout.staging_folder)]
        return [*found, f"staged files were left: {staged[:3]}"] if staged else found

    def waiting(self) -> list[str]:
        """What is left in the watched prefix."""
        found = (info.uri for info in self.app.store.list(self.app.layout.manifests_folder))
        return [uri for uri in found if base_name(uri) != KEEP_MARKER]

    def outcomes(self) -> dict[str, Commit | DeadLetter | None]:
        """What came of each manifest that has an id; None if it is undecided."""
        ids = (
            base_name(info.uri).removesuffix(".json") for info in self.app.store.list(self.app.layout.accepted_folder)
        )
        found: dict[str, Commit | DeadLetter | None] = {}
        for manifest_id in ids:
            accepted = self.app.ledger.accepted(manifest_id)
            assert accepted is not None
            found[manifest_id] = self.app.ledger.state(accepted.key).outcome
        return found

    def _harm(self, manifest_id: str) -> list[str]:
        outcome = self.outcomes().get(manifest_id)
        if not isinstance(outcome, Commit):
            return [f"{manifest_id}: expected a commit, found {outcome!r} ({self._error!r})"]
        rows, expected = self._rows(outcome), self.neighbours.expected(manifest_id)
        if not rows.equals(expected):
            return [f"{manifest_id}: expected {expected.num_rows} rows as written, found {rows.num_rows} others"]
        return []

    def _rows(self, commit: Commit) -> pa.Table:
        """The rows of a manifest by JSON key, in the order of keys and ids."""
        keys = {column.name: column.key for column in self.app.registry.version(commit.schema_version).columns}
        tables = []
        for file in commit.outputs:
            found = pq.ParquetFile(io.BytesIO(self.app.store.read(file.final)))
            names = [name for name in found.schema_arrow.names if keys.get(name) in self.neighbours.keys]
            tables.append(found.read(names).rename_columns([str(keys[name]) for name in names]))
        rows = pa.concat_tables(tables, promote_options="default")
        return rows.select(sorted(rows.column_names)).sort_by("id")

    def seen(self) -> Seen:
        """What came of the attack."""
        outcomes = [outcome for key, outcome in self.outcomes().items() if key not in self.neighbours.ids()]
        files = [file for each in outcomes if isinstance(each, Commit) for file in each.files if _is_attack(file)]
        rejects: Counter[str] = Counter()
        for file in files:
            rejects.update(file.rejects)
        undecided = sum(outcome is None for outcome in self.outcomes().values())
        return Seen(
            letters=dict(Counter(each.reason for each in outcomes if isinstance(each, DeadLetter))),
            statuses=dict(Counter(str(file.status) for file in files)),
            rows=sum(file.records for file in files),
            rejects=dict(rejects),
            stuck=len(self.waiting()) - undecided,
            retrying=undecided,
            discrepancies=len(self._discrepancies()),
        )

    def _discrepancies(self) -> set[Discrepancy]:
        """All that `verify` finds, and in the values of what is not the neighbours': theirs are compared as written."""
        accepted = [self.app.ledger.accepted(key) for key in self.outcomes() if key not in self.neighbours.ids()]
        compared = operating.verifier(self.app, deep=True).verify_manifests(
            [each.key for each in accepted if each is not None]
        )
        return {*operating.verifier(self.app).verify_all(closed=True).discrepancies, *compared.discrepancies}


def _is_attack(file: FileReport) -> bool:
    """Whether a report is about a file of the attacker, and final: a deferred file has another one.

    The others are about the good file of the attacker's manifest; its rows must be there.
    """
    if file.status is FileStatus.DEFERRED:
        return False
    if base_name(file.uri) != FRIEND:
        return True
    assert (file.status, file.records) == (FileStatus.COMPACTED, FRIEND_ROWS), file
    return False

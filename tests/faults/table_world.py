"""Committers of one table in a real catalog, behind a proxy that spoils commits, beside strangers."""

import json
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list

from compactor.adapters.iceberg.change import Change
from compactor.adapters.iceberg.opening import open_catalog
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.changes import StagedFile
from compactor.core.documents.table_records import MergedPart
from compactor.core.errors import CompactorError
from compactor.core.layout import Layout
from compactor.schema.schema import SchemaVersion
from compactor.table.catalog import TableChange, TableFile, TableHead
from compactor.table.merging.writing import MergedFiles
from compactor.table.named import Published
from tests.faults.catalog_proxy import CatalogProxy, Fate
from tests.support.harness import DiedError
from tests.support.iceberg_tables import client, rest_place, written
from tests.support.rest_catalog import RestCatalogServer
from tests.support.table_catalogs import version
from tests.support.table_processes import Process, TableWorld

FATES = {
    Fate.WELL: 6,
    Fate.LOST: 3,
    Fate.LATE: 3,
    Fate.DONE_503: 2,
    Fate.UNAVAILABLE: 2,
    Fate.DONE_504: 1,
    Fate.BROKEN: 1,
    Fate.DROPPED: 1,
    Fate.AGAIN: 1,
    Fate.NONSENSE: 1,
}
"""What becomes of commits, by how often."""

_MOST_STEPS = 26  # calls of the store and of the catalog that one batch makes, and more


class ProxiedTable:
    """A table behind a proxy, with what `TableWorld` asks of the one in memory, and what strangers do to it."""

    def __init__(self, proxy: CatalogProxy, server: RestCatalogServer) -> None:
        self.name = f"lake.events_{uuid.uuid4().hex}"
        self.proxy, self.server = proxy, server
        self.client = client(rest_place(proxy.url), self.name)
        self._stranger = open_catalog(rest_place(server.url))
        self.on_change: Callable[..., None] = lambda _: None
        self.exists: Callable[[str], bool] = lambda _: True
        self.answers: Callable[[], Any] = lambda: None

    def head(self) -> TableHead | None:
        return self.client.head()

    def create(self, owner: str, schema: SchemaVersion) -> TableHead:
        return self.client.create(owner, schema)

    def commit(self, head: TableHead, change: TableChange) -> int:
        return self.client.commit(head, change)

    def live_files(self, snapshot_id: int | None = None) -> Iterator[TableFile]:
        return self.client.live_files(snapshot_id)

    def land(self) -> bool:
        """Let the first commit that is late arrive."""
        return self.proxy.land()

    def append(self) -> None:
        """Commit a snapshot as a stranger, with the same files, unless a commit without an answer lands just now."""
        if self.client.head() is not None:
            change = Change(self._stranger.load_table(self.name))
            change.use_files([], [], {})
            with suppress(CommitFailedException):
                change.send(self._stranger)

    def expire(self) -> None:
        """Forget all snapshots but the current one, as a stranger."""
        if self.client.head() is None:
            return
        found = self._stranger.load_table(self.name)
        current = found.metadata.current_snapshot_id
        old = [each.snapshot_id for each in found.snapshots() if each.snapshot_id != current]
        if old:
            with suppress(CommitFailedException):
                found.maintenance.expire_snapshots().by_ids(old).commit()

    def compact(self) -> None:
        """Put the same files into fewer manifests, as a stranger."""
        if self.client.head() is None:
            return
        found = self._stranger.load_table(self.name)
        if found.current_snapshot() is not None:
            change = Change(found)
            change.merge_manifests()
            with suppress(CommitFailedException):
                change.send(self._stranger)

    def restart(self) -> None:
        """Kill the catalog, and start it again."""
        self.server.kill()
        self.server.start()

    def snapshots(self) -> list[int]:
        """All that are not expired."""
        return [each.snapshot_id for each in self._stranger.load_table(self.name).snapshots()]

    def rows(self) -> int:
        """As many as pyiceberg reads."""
        return int(self._stranger.load_table(self.name).scan().to_arrow().num_rows)


@dataclass
class CatalogWorld(TableWorld):
    """One state and one table in a real catalog."""

    def output(self, final: str, schema: int) -> StagedFile:
        path = Path(final)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{f"c{each}": f"{path.name} {row}" for each in range(1, schema + 1)} for row in range(3)]
        size_bytes = written(path, version(schema), rows).size_bytes
        self.store.put(final, b"rows")
        return StagedFile(staged="gone", final=final, rows=3, size_bytes=size_bytes)

    def merged(self, uri: str, parts: Sequence[MergedPart]) -> tuple[int, int]:
        """Write a merged file, as the merger does, on the disk that the catalog's clients read."""
        store, path = LocalStore(), Path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.store.put(uri, b"merged")
        return MergedFiles(store, "snappy").write(uri, parts, [part.uri for part in parts])

    def settle(self) -> None:
        """As in memory; some commits that are late arrive last of all."""
        self.faulty.fates = lambda: Fate.WELL
        super().settle()
        while self.faulty.has_late():
            self.faulty.land()

    def check_each_snapshot(self) -> None:
        """Each snapshot that is not expired has whole manifests, once each."""
        for snapshot_id in self.table.snapshots():  # type: ignore[attr-defined]
            self._check_change(tuple(self.table.live_files(snapshot_id)))

    @property
    def faulty(self) -> CatalogProxy:
        """The proxy before the catalog."""
        found: CatalogProxy = self.table.proxy  # type: ignore[attr-defined]
        return found


@dataclass(frozen=True)
class Story:
    """What a case was made of."""

    fates: Counter[Fate]
    died: int
    merged: int
    restarts: int
    held: list[str]


def _files(body: bytes) -> Iterator[str]:
    """The files that the snapshot of a commit has."""
    io = PyArrowFileIO()
    for update in json.loads(body).get("updates", ()):
        if update["action"] == "add-snapshot":
            for manifest in read_manifest_list(io.new_input(update["snapshot"]["manifest-list"])):
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io))


def play(
    seed: int, proxy: CatalogProxy, server: RestCatalogServer, folder: Path, *, restarts: bool, refuses: bool = False,
    merges: bool = False,
) -> Story:  # fmt: skip
    """Let two committers meet what a seed puts between their calls; then hold the table against the ledger.

    Args:
        seed: Of everything that is left to chance.
        proxy: Before the catalog.
        server: The catalog.
        folder: For files.
        restarts: Whether the catalog is killed and started again between two calls.
        refuses: Whether the catalog refuses a file of the first manifest for ever; what is late, it takes unseen.
        merges: Whether files are merged, and rebuilt after that.
    """
    chance = random.Random(seed)
    layout = Layout(*(str(folder / name) for name in ("manifests", "output", "state")))
    table = ProxiedTable(proxy, server)
    world = CatalogWorld(table=table, layout=layout)  # type: ignore[arg-type]
    proxy.fates = lambda: chance.choices([*FATES], [*FATES.values()])[0]
    before = Counter(proxy.posts)
    a, b = world.place("a"), world.place("b", schema=2)
    if refuses:
        world.spoil(a)
    proxy.refuses = lambda body: refuses and bool(world.unfit & set(_files(body)))
    shared = [a, b] if chance.random() < 0.5 else [b]
    other = world.process(shared, name="second")
    interruptions = [other.tried, _die, table.append, table.expire, table.compact, table.land]
    moments = {chance.randint(1, _MOST_STEPS): chance.choice(interruptions) for _ in range(2)}
    if restarts:
        moments[chance.randint(1, _MOST_STEPS // 2)] = table.restart
    one = world.process([a, b], name="first", before=_at(moments))
    died = 0
    for process in (one, other, one):
        died += _died(process)
    if chance.random() < 0.5:
        world.place("a", 2)
    table.append()
    if merges:
        died += _merge(world, chance, [a, b])
    if chance.random() < 0.5:
        world.place("b", 2)
    _died(world.process([world.place("c", schema=3)], name="third"))
    world.settle()
    world.check()
    world.check_each_snapshot()
    rows = table.rows()
    shutil.rmtree(folder)
    assert rows == 3 * len(world.live()), "lost or doubled rows"
    merged = sum(batch.merge != "" for batch in world.all_batches())
    return Story(proxy.posts - before, died, merged, int(restarts), [each.key.id for each in world.held()])


def _merge(world: CatalogWorld, chance: random.Random, published: Sequence[Published]) -> int:
    """Merge what the table has of manifests, with a death or a stranger between two calls; return whether it died."""
    live = set(world.live())
    whole = [each for each in published if {file.final for file in world.commits[each].outputs} <= live]
    if not whole:
        return 0
    merge = world.written_merge(*whole)
    moments: dict[int, Callable[[], Any]] = {
        chance.randint(1, _MOST_STEPS): chance.choice([_die, world.table.append, world.table.land])  # type: ignore[attr-defined]
    }
    try:
        with suppress(CompactorError):
            world.process(name="merger", before=_at(moments)).committer.merge(merge)
    except DiedError:
        return 1
    return 0


def _die() -> None:
    raise DiedError


def _died(process: Process) -> int:
    try:
        process.tried()
    except DiedError:
        return 1
    return 0


def _at(moments: dict[int, Callable[[], Any]]) -> Callable[[], None]:
    """Does each thing before the call with its number, once."""
    calls = 0

    def before() -> None:
        nonlocal calls
        calls += 1
        what = moments.pop(calls, None)
        if what is not None:
            what()

    return before

"""Processes that commit manifests to one table: what they share, how they meet, and what must hold meanwhile."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.core.documents.changes import Commit, Merge, StagedFile
from compactor.core.documents.table_records import MergedFile, MergedPart, TableBatch
from compactor.core.errors import CompactorError, StagingError
from compactor.core.layout import Layout, ManifestKey
from compactor.ledger.change_log import merge_of
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.table.catalog import TableFile
from compactor.table.changes import Changes
from compactor.table.committer import Committer, Progress
from compactor.table.merging.remainders import Remainders
from compactor.table.named import NamedManifests, Published
from compactor.table.unmerged import committed_files
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.memory_table import Answer, MemoryTable
from tests.support.table_catalogs import DATE, version

Meeting = Callable[[], None]
"""Called before a process calls the store or the catalog."""

STEPS_A_MANIFEST = 8
"""More batches than it takes to find one of a few manifests to blame, each half as large as the one before."""

_CALLS = {"list", "read", "stat", "create", "put", "head", "commit", "live_files"}


@dataclass
class Watched:
    """A store or a catalog that tells before each call."""

    inner: Any
    before: Meeting

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in _CALLS:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.before()
            return found(*arguments, **named)

        return call


@dataclass
class Process:
    """One process: it commits what is placed, records done, and forgets what is finished."""

    committer: Committer
    published: list[Published]

    def step(self) -> Progress:
        """Take one batch further, as the job does."""
        progress = self.committer.commit(self.published)
        ledger = self.committer.state.ledger
        for each in progress.visible:
            ledger.finish(each.key)
            if each.generation > 1:
                ledger.finish(each.key, each.generation)
        self.committer.named.finish(progress.visible)
        gone = {*progress.visible, *progress.superseded, *progress.stuck}
        self.published = [each for each in self.published if each not in gone]
        return progress

    def tried(self) -> None:
        """Take a step, whatever comes of it."""
        with contextlib.suppress(CompactorError):
            self.step()


@dataclass
class FakeFiles:
    """Writes merged files that no one reads."""

    world: "TableWorld"

    def write_part(self, uri: str, source: str, ranges: Sequence[range]) -> tuple[int, int]:
        """Put a file into its place, if there is one to take rows from."""
        if self.world.store.stat(source) is None:
            raise StagingError(f"{source}: no such object; expected a Parquet file")
        self.world.store.put(uri, b"merged")
        return sum(map(len, ranges)), 6


@dataclass
class TableWorld:
    """One state and one table. It checks each change of either."""

    store: MemoryStore = field(default_factory=lambda: MemoryStore(ManualClock()))
    table: MemoryTable = field(default_factory=MemoryTable)
    layout: Layout = field(default_factory=lambda: Layout("/w/manifests", "/w/output", "/w/state"))
    broken: list[str] = field(default_factory=list)
    commits: dict[Published, Commit] = field(default_factory=dict)

    unfit: set[str] = field(default_factory=set)  # files that the catalog refuses

    def __post_init__(self) -> None:
        self.table.on_change = self._check_change
        self.table.exists = lambda uri: uri not in self.unfit and self.store.stat(uri) is not None

    def spoil(self, published: Published) -> Published:
        """Have the catalog refuse the last file of a manifest for ever."""
        self.unfit.add(self.commits[published].outputs[-1].final)
        return published

    def place(self, manifest_id: str, generation: int = 1, *, files: int = 2, schema: int = 1) -> Published:
        """Decide a manifest, with its files in their places."""
        key = ManifestKey(DATE, manifest_id)
        first = 1 + (generation - 1) * files
        finals = [self.layout.output_file(key, part) for part in range(first, first + files)]
        outputs = [self.output(final, schema) for final in finals]
        now = ManualClock().now()
        commit = Commit(
            manifest_id=manifest_id, date=DATE, generation=generation, attempt=1, run_id="r", engine="e",
            schema_version=schema, outputs=outputs, rejects=[], files=[], max_line_bytes=1,
            max_decompressed_bytes=1, started_at=now, decided_at=now,
        )  # fmt: skip
        self.ledger().decide(commit)
        published = Published(key, generation)
        self.commits[published] = commit
        return published

    def output(self, final: str, schema: int) -> StagedFile:  # noqa: ARG002 - for worlds with real files
        """Put a file of three rows with the columns of a schema version into its place."""
        self.store.put(final, b"rows")
        return StagedFile(staged="gone", final=final, rows=3, size_bytes=4)

    def ledger(self, store: Any = None) -> Ledger:
        return Ledger(store or self.store, self.layout, ManualClock(), "run")

    def state(self, store: Any = None, run_id: str = "") -> State:
        store, clock = store or self.store, ManualClock()
        return State(store=store, layout=self.layout, ledger=Ledger(store, self.layout, clock, run_id), clock=clock)

    def process(
        self, published: Sequence[Published] = (), *, name: str = "p", most: int = 100, replays: bool = False,
        before: Meeting = lambda: None,
    ) -> Process:  # fmt: skip
        """A fresh process with what it placed itself."""
        store, catalog = Watched(self.store, before), Watched(self.table, before)
        state = self.state(store, name)
        batches = TableBatches(state)
        committer = Committer(
            state=state,
            batches=batches,
            catalog=catalog,
            changes=Changes(state, version),
            named=NamedManifests(batches, state.ledger, replays),
            latest=lambda: version(1),
            max_manifests=most,
            remainders=Remainders(state, lambda: FakeFiles(self)),  # type: ignore[arg-type,return-value]
        )
        return Process(committer, list(published))

    def settle(self) -> None:
        """Whatever is late lands, and a fresh process commits what is not done."""
        while self.table.land():
            pass
        self.table.answers = lambda: Answer.WELL
        ledger = self.ledger()
        left = self.process([each for each in self.commits if not ledger.is_done(*each)])
        for _ in range(STEPS_A_MANIFEST * len(self.commits) + 2):
            left.step()
        if left.published:
            self.broken.append(f"{left.published} are not done in the end")

    def live(self) -> list[str]:
        """The URIs of the live files, with the files that were merged in place of merged ones."""
        return [file.uri for file in committed_files(self.state(), self.table.live_files())]

    def written_merge(self, *published: Published, name: str = "x", base: int | None = None) -> Merge:
        """Write the files of manifests to one file, and put the merge on record."""
        head = self.table.head()
        base = (head.fence if head else 0) if base is None else base
        merge_id = f"{base:08d}-{name}"
        uri = self.layout.merged_file(merge_id, 1)
        parts = [
            MergedPart(
                date=DATE, manifest_id=each.key.id, generation=each.generation, uri=file.final, rows=file.rows,
                size_bytes=file.size_bytes,
            )
            for each in published
            for file in self.commits[each].outputs
        ]  # fmt: skip
        rows, size_bytes = self.merged(uri, parts)
        merged = MergedFile(uri=uri, rows=rows, size_bytes=size_bytes, date=DATE, parts=parts)
        return self.ledger().decide(merge_of(self.state(), merge_id, base, [merged]))

    def merged(self, uri: str, parts: Sequence[MergedPart]) -> tuple[int, int]:
        """Put a merged file into its place."""
        self.store.put(uri, b"merged")
        return sum(part.rows for part in parts), 6

    def check(self) -> None:
        """Hold what the table has against the ledger: what is not held back for its reason is there, and done."""
        newest = {
            each.key.id: commit for each, commit in sorted(self.commits.items(), key=lambda one: one[0].generation)
        }
        held, ledger = self.held(), self.ledger()
        self.broken += [
            f"{each} is held back and is fit" for each in held if not _uris(self.commits[each]) & self.unfit
        ]
        valid = [each for each in held if newest[each.key.id].generation == each.generation]
        self.broken += [f"{each} is held back and done" for each in valid if ledger.is_done(*each)]
        expected = sorted(
            file.final
            for commit in newest.values()
            if Published(commit.key, commit.generation) not in held
            for file in commit.outputs
        )
        if sorted(self.live()) != expected:
            self.broken.append(f"live {sorted(self.live())}, expected {expected}")
        head, batches = self.table.head(), list(self.recorded())
        fence, refused = head.fence if head else 0, self.batches().refused
        if fence != len(batches):
            self.broken.append(f"fence {fence}, with {len(batches)} batches on record")
        taken = [batch for number, batch in enumerate(batches, 1) if not refused.has(number)]
        named = Counter((each.manifest_id, each.generation) for batch in taken for each in batch)
        self.broken += [f"{each} is in {count} batches" for each, count in named.items() if count > 1]
        assert self.broken == []

    def all_batches(self) -> Iterator[TableBatch]:
        """The batches on record."""
        number = 1
        while (batch := self.batches().batch(number)) is not None:
            yield batch
            number += 1

    def recorded(self) -> Iterator[list[Any]]:
        """The manifests of each batch on record."""
        return (batch.manifests for batch in self.all_batches())

    def batches(self) -> TableBatches:
        return TableBatches(self.state())

    def held(self) -> list[Published]:
        """What is held back, each with a reason."""
        found = list(self.batches().refused.all_held())
        assert all(each.reason for each in found)
        return [Published(each.key, each.generation) for each in found]

    def check_done(self, uri: str) -> None:
        """A manifest may be done once it is visible."""
        for published, commit in self.commits.items():
            if uri == self.layout.done(published.key, published.generation):
                missing = {file.final for file in commit.outputs} - set(self.live())
                later = any(
                    other.key == published.key and other.generation > published.generation for other in self.commits
                )
                if missing and not later:
                    self.broken.append(f"{published} is done, and not visible")

    def _check_change(self, files: tuple[TableFile, ...]) -> None:
        live = Counter(file.uri for file in committed_files(self.state(), files))
        self.broken += [f"{uri} is live {count} times" for uri, count in live.items() if count > 1]
        seen = Counter(published.key.id for published, commit in self.commits.items() if live.keys() & _uris(commit))
        self.broken += [f"{name} is there in {count} generations" for name, count in seen.items() if count > 1]
        for published, commit in self.commits.items():
            if live.keys() & _uris(commit) not in (set(), _uris(commit)):
                self.broken.append(f"{published} is there in part")


def _uris(commit: Commit) -> set[str]:
    return {file.final for file in commit.outputs}

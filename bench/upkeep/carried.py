"""How many manifests an hour one committer can carry: from placed to done, with ledger and table on this disk."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.local.store import LocalStore
from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.layout import Layout, ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.table.changes import Changes
from compactor.table.committer import Committer
from compactor.table.merging.remainders import Remainders
from compactor.table.merging.writing import MergedFiles
from compactor.table.named import NamedManifests, Published
from tests.support.iceberg_tables import client, sql_place, written
from tests.support.memory_store import ManualClock
from tests.support.table_catalogs import DATE, version

COLUMNS = 10
FILES = 2


@dataclass(frozen=True, slots=True)
class Carried:
    """What a committer took.

    Attributes:
        manifests: How many, each of `FILES` files.
        commits: To the table.
        seconds: In all.
        cpu_seconds: Of this process.
    """

    manifests: int
    commits: int
    seconds: float
    cpu_seconds: float

    @property
    def an_hour(self) -> float:
        """Manifests an hour, if it did nothing else."""
        return 3600 * self.manifests / self.seconds


def carried(folder: Path, manifests: int, at_once: int) -> Carried:
    """Commit manifests and bring them to done, as the thread of a job that commits does.

    Args:
        folder: For everything.
        manifests: How many wait.
        at_once: The most manifests of one commit.
    """
    clock, store = ManualClock(), LocalStore()
    layout = Layout(*(str(folder / name) for name in ("manifests", "output", "state")))
    state = State(store=store, layout=layout, ledger=Ledger(store, layout, clock, "bench"), clock=clock)
    left = _placed(folder, state, manifests)
    batches = TableBatches(state)
    committer = Committer(
        state=state,
        batches=batches,
        catalog=client(sql_place(folder)),
        changes=Changes(state, lambda _: version(COLUMNS)),
        named=NamedManifests(batches, state.ledger),
        latest=lambda: version(COLUMNS),
        max_manifests=at_once,
        remainders=Remainders(state, lambda: MergedFiles(store, layout.compression)),
    )
    began, cpu_began, commits = time.perf_counter(), time.process_time(), 0
    while left:
        visible = committer.commit(left).visible
        for _ in map_ordered(lambda each: state.ledger.finish(each.key), visible):
            pass
        committer.named.finish(visible)
        done, commits = {*visible}, commits + 1
        left = [each for each in left if each not in done]
    return Carried(manifests, commits, time.perf_counter() - began, time.process_time() - cpu_began)


def _placed(folder: Path, state: State, manifests: int) -> list[Published]:
    """Manifests that are decided, with their files in their places."""
    schema, clock = version(COLUMNS), state.clock
    original = written(folder / "file.parquet", schema, [{column.name: "some text" for column in schema.columns}])
    made = list[Published]()
    for number in range(manifests):
        key = ManifestKey(DATE, f"m{number:06d}")
        outputs = [
            StagedFile(staged="gone", final=state.layout.output_file(key, part), rows=1, size_bytes=original.size_bytes)
            for part in range(1, FILES + 1)
        ]
        for each in outputs:
            Path(each.final).parent.mkdir(parents=True, exist_ok=True)
            os.link(folder / "file.parquet", each.final)
        commit = Commit(
            manifest_id=key.id, date=DATE, generation=1, attempt=1, run_id="bench", engine="native", schema_version=1,
            outputs=outputs, rejects=[], files=[], max_line_bytes=1, max_decompressed_bytes=1,
            started_at=clock.now(), decided_at=clock.now(),
        )  # fmt: skip
        state.ledger.decide(commit)
        made.append(Published(key))
    return made

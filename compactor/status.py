"""How the job stands, from what is stored: backlog, latest commits, dead letters, schema. One screen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from compactor.errors import ObjectNotFound
from compactor.layout import Layout, is_delivery
from compactor.ledger import Ledger
from compactor.ports import Clock, ObjectStore
from compactor.presence import Runs
from compactor.records import DeadLetter, RecentCommit, RunBeat
from compactor.registry import SchemaRegistry
from compactor.sizing import learned_ratio
from compactor.work_time import covered_seconds, work_spans

DEAD_LETTERS_READ = 200  # reasons are counted over so many; the number of all is exact


@dataclass(frozen=True, slots=True)
class Status:
    """How the job stands.

    Attributes:
        as_of: When this was read.
        runs: The last sign of life of each job that gave one lately.
        waiting_manifests: In the watched prefix.
        oldest_waiting_seconds: Age of the oldest of them; 0 if there is none.
        pending_parts: Announced files that wait for others, in so many parts.
        open_manifests: Begun and not done.
        dead_letters: All that were ever set aside and are still there.
        dead_letters_by_reason: Of the first `DEAD_LETTERS_READ` of them.
        schema_version: The latest.
        columns: Of the latest schema version.
        newest_column: The column that came last; empty if there is none.
        recent: Summaries of the latest commits, oldest first.
        ratio: Parquet bytes per decoded input byte, as sizing has learned it.
    """

    as_of: datetime
    runs: tuple[RunBeat, ...]
    waiting_manifests: int
    oldest_waiting_seconds: float
    pending_parts: int
    open_manifests: int
    dead_letters: int
    dead_letters_by_reason: dict[str, int]
    schema_version: int
    columns: int
    newest_column: str
    recent: tuple[RecentCommit, ...]
    ratio: float | None

    @property
    def input_bytes_per_second(self) -> float:
        """Stored input per second in which any of the latest commits was in work."""
        seconds = covered_seconds(work_spans(self.recent))
        return sum(commit.input_bytes for commit in self.recent) / seconds if seconds else 0.0


def read_status(
    store: ObjectStore, layout: Layout, ledger: Ledger, registry: SchemaRegistry, runs: Runs, clock: Clock
) -> Status:
    """Read how the job stands. The cost depends on what is open, not on what is done."""
    now = clock.now()
    waiting = [info for info in store.list(layout.manifests_folder) if is_delivery(info.uri)]
    oldest = min((info.modified_at for info in waiting), default=now)
    reasons = [info.uri for info in store.list(layout.failed_folder) if info.uri.endswith(".reason.json")]
    letters = list(_dead_letters(store, reasons[:DEAD_LETTERS_READ]))
    schema = registry.latest()
    recent = ledger.recent()
    return Status(
        as_of=now,
        runs=tuple(runs.living()),
        waiting_manifests=len(waiting),
        oldest_waiting_seconds=max(0.0, (now - oldest).total_seconds()),
        pending_parts=sum(1 for _ in store.list(layout.pending_folder)),
        open_manifests=sum(1 for _ in ledger.open_ids()),
        dead_letters=len(reasons),
        dead_letters_by_reason=dict(Counter(letter.reason for letter in letters)),
        schema_version=schema.version,
        columns=len(schema.columns),
        newest_column=schema.columns[-1].name if schema.columns else "",
        recent=tuple(recent),
        ratio=learned_ratio(recent),
    )


def _dead_letters(store: ObjectStore, uris: Sequence[str]) -> Iterator[DeadLetter]:
    for uri in uris:
        with suppress(ObjectNotFound):  # put back since the listing
            yield DeadLetter.model_validate_json(store.read(uri))

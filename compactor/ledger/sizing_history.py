"""Learns sizes: reads the ledger's ring of recent commits once, then adds each new commit."""

from collections.abc import Sequence
from datetime import datetime
from threading import Lock

from compactor.core.documents.changes import Commit
from compactor.core.documents.counts import counts_of
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import TryAgainError
from compactor.ledger.ledger import RECENT_SLOTS, Ledger
from compactor.ledger.sizing import learned_ratio, sized_bytes, sizes_by_partition, stored_ratio
from compactor.telemetry.logs import log_event

KEPT_SECONDS = 300.0
"""How long a function keeps the sizes of the latest commits between its calls."""


class SizingHistory:
    """The latest commits, for sizing: those on record by default."""

    def __init__(self, ledger: Ledger, target_file_bytes: int, recent: Sequence[RecentCommit] | None = None) -> None:
        self._ledger = ledger
        self._target_file_bytes = target_file_bytes
        self._lock = Lock()
        self._recent = None if recent is None else list(recent)

    def ratio(self) -> float | None:
        """Parquet bytes per decoded input byte; None if too little was committed."""
        with self._lock:
            return learned_ratio(self._loaded())

    def stored_ratio(self) -> float | None:
        """Parquet bytes per stored input byte; None if too little was committed."""
        with self._lock:
            return stored_ratio(self._loaded())

    def has_commit_since(self, moment: datetime, *, other_than: str) -> bool:
        """Whether another manifest was committed after a moment, as far as this run knows."""
        with self._lock:
            return any(each.decided_at > moment and each.manifest_id != other_than for each in self._loaded())

    def add(self, commit: Commit, *, arrived_at: datetime | None = None) -> None:
        """Learn from one of this run's commits, and save its summary for later runs.

        Args:
            commit: A commit decided by this run.
            arrived_at: When its manifest was created.
        """
        summary = summarised(commit, target_file_bytes=self._target_file_bytes, arrived_at=arrived_at)
        with self._lock:
            self._recent = [*self._loaded(), summary][-RECENT_SLOTS:]
        try:
            self._ledger.remember(summary)
        except TryAgainError as exc:
            # Only later runs need it, and publishing the decided manifest comes first.
            log_event("commit.not_remembered", manifest_id=commit.manifest_id, error=exc)

    def _loaded(self) -> list[RecentCommit]:
        if self._recent is None:
            self._recent = self._ledger.recent()
        return self._recent


def revised(known: RecentCommit, commit: Commit) -> RecentCommit:
    """The summary of a rebuilt manifest: the figures of its new commit, and the times of its first one."""
    made = summarised(commit, target_file_bytes=known.target_file_bytes, arrived_at=known.arrived_at)
    return made.model_copy(update={"decided_at": known.decided_at, "seconds": known.seconds})


def summarised(commit: Commit, *, target_file_bytes: int, arrived_at: datetime | None = None) -> RecentCommit:
    """The summary of a commit, with the target size of its files."""
    own, among_all = (counts_of(commit, with_source=each) for each in (False, True))
    sized = sized_bytes(sizes_by_partition(commit), target_file_bytes)
    return RecentCommit(
        manifest_id=commit.manifest_id,
        date=commit.date,
        decoded_bytes=among_all.decoded_bytes,
        input_bytes=among_all.input_bytes,
        output_bytes=own.output_bytes,
        output_files=own.output_files,
        input_files=among_all.input_files,
        records=own.rows,
        rejected_lines=own.rejected_lines,
        seconds=(commit.decided_at - commit.started_at).total_seconds(),
        decided_at=commit.decided_at,
        arrived_at=arrived_at,
        rejects=dict(own.rejects_by_reason),
        quarantined=dict(own.left_to_operator),
        columns=commit.columns,
        max_columns=commit.max_columns,
        rejects_of=commit.rejects_of,
        redriven=dict(own.redriven_by_reason),
        misfits=commit.misfits,
        target_file_bytes=target_file_bytes,
        right_sized_bytes=sized.right_sized_bytes,
        small_bytes=sized.small_bytes,
    )

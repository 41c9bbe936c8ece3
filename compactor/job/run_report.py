"""Sums up a run from its batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from compactor.core.documents.closed_dates import commit_totals
from compactor.core.documents.records import Commit
from compactor.core.errors import TryAgainError
from compactor.job.batches import BatchResult
from compactor.job.steps.results import CompactionResult, Ending
from compactor.telemetry.error_text import described


class ManifestsUnfinished(TryAgainError):
    """A run that was to do everything gave up on some manifests; a later run tries them again.

    Args:
        failures: The last error of each unfinished manifest, by manifest id; at least one.
    """

    next_move = "run it again, nothing has been lost; `compactor trace` shows what became of each attempt"

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.failures = dict(failures)
        manifest_id, error = next(iter(failures.items()))
        super().__init__(f"{len(failures)} manifests are not done; manifest {manifest_id}: {error}")


_FIGURES = (
    "committed",
    "dead_lettered",
    "quarantined_files",
    "records",
    "rejected_lines",
    "input_files",
    "input_bytes",
    "output_bytes",
    "output_files",
)


@dataclass(slots=True)
class RunReport:
    """What a run did.

    Attributes:
        committed: Manifests that this run committed or carried to done.
        dead_lettered: Manifests that it made dead letters.
        quarantined_files: Files that it quarantined.
        records: Rows that became visible.
        rejected_lines: Lines that became rejects.
        input_files: Input files, which are the compacted ones; those of redriven lines are none.
        input_bytes: Their stored bytes.
        output_bytes: Parquet bytes.
        output_files: Parquet files of rows.
        failures: The last error of each manifest that did not finish, by manifest id.
        stuck: What is wrong with each manifest that only a person can fix, by manifest id.
    """

    committed: int = 0
    dead_lettered: int = 0
    quarantined_files: int = 0
    records: int = 0
    rejected_lines: int = 0
    input_files: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    output_files: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)
    _unreceived: dict[str, str] = field(default_factory=dict)

    def add(self, batch: BatchResult) -> None:
        """Count one batch."""
        for result in batch.results:
            if result.ending is not Ending.ALREADY_DONE:
                self._add_result(result)
            self.failures.pop(result.manifest_id, None)
            self.stuck.pop(result.manifest_id, None)
        for manifest_id, postponed in batch.postponed.items():
            due = "later" if postponed.due_at is None else f"at {postponed.due_at:%Y-%m-%d %H:%M:%S} UTC"
            self.failures.setdefault(manifest_id, f"it failed before, and its next attempt is due {due}")
        for uri in batch.received & self._unreceived.keys():
            manifest_id = self._unreceived.pop(uri)
            self.failures.pop(manifest_id, None)
            self.stuck.pop(manifest_id, None)
        self._unreceived.update(batch.unreceived)
        self.failures.update({manifest_id: described(error) for manifest_id, error in batch.failures.items()})
        self.stuck.update({manifest_id: described(error) for manifest_id, error in batch.stuck.items()})

    def merge(self, other: "RunReport") -> None:
        """Add what a later run did."""
        self._add_figures(other)
        self.failures, self.stuck = other.failures, other.stuck

    def add_stream(self, other: "RunReport") -> None:
        """Add what a run on another stream did."""
        self._add_figures(other)
        self.failures.update(other.failures)
        self.stuck.update(other.stuck)

    def _add_figures(self, other: "RunReport") -> None:
        for name in _FIGURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _add_result(self, result: CompactionResult) -> None:
        if not isinstance(result.outcome, Commit):
            self.dead_lettered += 1
            return
        self.committed += 1
        own, among_all = (commit_totals(result.outcome, with_source=each) for each in (False, True))
        self.quarantined_files += own.quarantined_by_status.total()
        self.records += own.rows
        self.rejected_lines += own.rejected_lines
        self.input_files += among_all.input_files
        self.input_bytes += among_all.input_bytes
        self.output_bytes += own.output_bytes
        self.output_files += own.output_files

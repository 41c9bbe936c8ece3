"""Puts the table sink together."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from compactor.core.errors import SettingsError
from compactor.core.rules.sharding import shard_number
from compactor.job.publication import Publisher
from compactor.ledger.table.batches import TableBatches
from compactor.telemetry.logs import log_event
from compactor.wiring.job.engine_components import EngineComponents

# Few processes have a table, and a short command would wait for all of this to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.job.table_commits import TableCommits
    from compactor.ops.table.keeper import TableKeeper
    from compactor.ops.table.maintainer import Maintainer
    from compactor.ops.table.merger import Merger
    from compactor.table.committer import Committer
    from compactor.table.merging.writing import MergedFiles
    from compactor.upkeep.tasks import Task

_MERGED_ONLY_IN_TABLES = (
    ": readers of plain Parquet files would see rows twice or not at all while files are replaced, and only a table "
    "replaces them in one step"
)


class TableComponents(EngineComponents):
    """The components of a table sink. Nothing is connected to without one."""

    def committer(self, *, replays: bool = False) -> "Committer":
        """Make what commits placed manifests to the table.

        Args:
            replays: Whether the table may lack batches that were applied, and manifests that are done.
        """
        from compactor.table.changes import Changes
        from compactor.table.committer import Committer
        from compactor.table.merging.remainders import Remainders
        from compactor.table.named import NamedManifests

        batches, changes = self._batches, Changes(self.state, self.registry.version)
        return Committer(
            state=self.state,
            batches=batches,
            catalog=self.table_catalog,
            changes=changes.made_again() if replays else changes,
            named=NamedManifests(batches, self.ledger, replays),
            latest=self.registry.latest,
            max_manifests=self.settings.table.max_manifests_per_commit,
            remainders=Remainders(self.state, self._merged_files),
        )

    def table_keeper(self, on_batch: Callable[[int], None] = lambda _: None) -> "TableKeeper":
        """Make what compares the table with the ledger, and makes it again.

        Raises:
            SettingsError: The settings name no table.
        """
        from compactor.ops.table.keeper import TableKeeper

        self._check_table()
        name = self.settings.table.name
        return TableKeeper(
            state=self.state,
            committer=self.committer(replays=True),
            name=name,
            on_batch=on_batch,
            living=lambda: [each.run_id for each in self.runs.living()],
        )

    def merger(self, on_merge: Callable[[int], None] = lambda _: None) -> "Merger":
        """Make what merges small files of the table.

        Raises:
            SettingsError: The settings name no table.
        """
        from compactor.ops.table.merger import Merger
        from compactor.ops.table.removing import MergedLeftovers
        from compactor.table.merging.choosing import MergeRule

        self._check_table(_MERGED_ONLY_IN_TABLES)
        return Merger(
            state=self.state,
            committer=self.committer(),
            files=self._merged_files(),
            leftovers=MergedLeftovers(self.state, self._batches, self.table_catalog),
            name=self.settings.table.name,
            rule=MergeRule(self.settings.output.target_file_bytes),
            on_merge=on_merge,
        )

    def maintainer(self, keep_days: int | None = None, keep_snapshots: int | None = None) -> "Maintainer":
        """Make what does the upkeep of the table.

        Args:
            keep_days: Days that a snapshot stays after a later one took its place; None for those of the settings.
            keep_snapshots: Snapshots that stay at least; None for those of the settings.

        Raises:
            SettingsError: The settings name no table.
        """
        from compactor.ops.table.maintainer import Maintainer
        from compactor.ops.table.removing import ReleasedOriginals
        from compactor.table.upkeep import KeepRule

        self._check_table()
        table = self.settings.table
        removes = table.merged_originals == "remove"
        days = table.keep_snapshot_days if keep_days is None else keep_days
        least = table.keep_snapshots if keep_snapshots is None else keep_snapshots
        return Maintainer(
            state=self.state,
            batches=self._batches,
            catalog=self.table_catalog,
            name=table.name,
            rule=KeepRule(timedelta(days=days), least),
            originals=ReleasedOriginals(self.state, self.committer()) if removes else None,
        )

    def table_commits(self, publisher: Publisher, leads: Callable[[], bool] | None) -> "TableCommits | None":
        """Make what brings placed manifests of a job to done; None without a table sink.

        Args:
            publisher: Carries them on.
            leads: For one of several shards: returns whether it commits for all.
        """
        if not self.has_table:
            return None
        from compactor.job.table_commits import CommitTurns, TableCommits
        from compactor.ledger.table.progress import ProgressNotes

        table, shard = self.settings.table, shard_number(self.settings.stream.shard) or 1
        return TableCommits(
            committer=self.committer(),
            publisher=publisher,
            notes=ProgressNotes(self.state, self.run_id, shard),
            turns=CommitTurns(self.state, shard, leads) if leads is not None else None,
            clock=self.clock,
            metrics=self.metrics,
            commit_seconds=table.commit_seconds,
            max_manifests=table.max_manifests_per_commit,
            max_waiting=table.max_waiting_manifests,
        )

    def table_tasks(self, leads: Callable[[], bool]) -> "list[Task]":
        """What maintains and merges the table beside a job, as the settings say; nothing without a table sink.

        Args:
            leads: Returns whether it does so for all shards.
        """
        if not self.has_table:
            return []
        from compactor.upkeep.tasks import Task

        def task(name: str, hours: float, work: "Callable[[], dict[str, int]]") -> Task:
            def run(_is_stopping: object) -> None:
                log_event("table.upkeep_done", task=name, done=work())

            return Task(name=name, every_seconds=hours * 3600, run=run, leads=leads)

        table = self.settings.table
        tasks = (
            task("table maintain", table.maintain_hours, self._maintained),
            task("table merge", table.merge_hours, self._merged),
        )
        return [each for each in tasks if each.every_seconds]

    def _maintained(self) -> dict[str, int]:
        report = self.maintainer().maintain()
        return {
            "expired_snapshots": report.expired_snapshots,
            "merged_manifests": report.merged_manifests,
            "removed_files": report.removed_files,
            "removed_originals": report.removed_originals,
        }

    def _merged(self) -> dict[str, int]:
        report = self.merger().merge()
        return {
            "merged_files": report.merged_files,
            "made_files": report.made_files,
            "not_merged": len(report.not_merged),
            "removed_files": report.removed_files,
        }

    def _merged_files(self) -> "MergedFiles":
        from compactor.table.merging.writing import MergedFiles

        return MergedFiles(self.store, self.layout.compression)

    @property
    def _batches(self) -> TableBatches:
        return TableBatches(self.state)

    def _check_table(self, why: str = "") -> None:
        if not self.has_table:
            raise SettingsError([f'output.table: "none" -> expected "iceberg", and the table in [table]{why}'])

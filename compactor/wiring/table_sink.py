"""Builds the table sink. Nothing connects before use."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from compactor.core.errors import SettingsError
from compactor.ledger.table.batches import TableBatches
from compactor.table.standing import ListedTable
from compactor.telemetry.logs import log_event
from compactor.wiring.app import App
from compactor.wiring.opening import table_catalog
from compactor.wiring.operating import listed_table

MANIFESTS_PER_COMMIT = 500
"""The most manifests per commit."""

MOST_WAITING_MANIFESTS = 10 * MANIFESTS_PER_COMMIT
"""How many manifests may wait for a commit before no more are started."""

KEEP_SNAPSHOTS = 100
"""The number of latest snapshots kept at any age, so that a table with few commits keeps some to read."""

# Few processes have a table, and a short command would wait for all of this to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.job.publication import Publisher
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


def committer(app: App, *, replays: bool = False) -> "Committer":
    """Create the committer of published manifests.

    Args:
        app: The ports.
        replays: Whether the table may lack applied batches, and manifests that are done.
    """
    from compactor.table.changes import Changes
    from compactor.table.committer import Committer
    from compactor.table.merging.remainders import Remainders
    from compactor.table.named import NamedManifests

    batches, changes = TableBatches(app.state), Changes(app.state, app.registry.version)
    return Committer(
        state=app.state,
        batches=batches,
        catalog=table_catalog(app),
        changes=changes.made_again() if replays else changes,
        named=NamedManifests(batches, app.ledger, replays),
        latest=app.registry.latest,
        max_manifests=MANIFESTS_PER_COMMIT,
        remainders=Remainders(app.state, lambda: _merged_files(app)),
    )


def table_keeper(app: App) -> "TableKeeper":
    """Make what compares the table with the ledger, and makes it again.

    Raises:
        SettingsError: No table is configured.
    """
    from compactor.ops.table.keeper import TableKeeper

    return TableKeeper(
        state=app.state,
        table=_table(app),
        committer=committer(app, replays=True),
        living=lambda: [each.run_id for each in app.runs.living()],
    )


def merger(app: App) -> "Merger":
    """Make what merges small files of the table.

    Raises:
        SettingsError: No table is configured.
    """
    from compactor.ops.table.merger import Merger
    from compactor.table.merging.choosing import MergeRule

    return Merger(
        state=app.state,
        name=_table(app, _MERGED_ONLY_IN_TABLES).name,
        committer=committer(app),
        files=_merged_files(app),
        rule=MergeRule(app.settings.output.target_file_bytes),
    )


def maintainer(app: App, keep_days: int | None = None, keep_snapshots: int | None = None) -> "Maintainer":
    """Create the maintainer of the table.

    Args:
        app: The ports.
        keep_days: Days that a snapshot stays after it was replaced; None for the configured number.
        keep_snapshots: The number of latest snapshots kept at any age; None for `KEEP_SNAPSHOTS`.

    Raises:
        SettingsError: No table is configured.
    """
    from compactor.ops.table.maintainer import Maintainer
    from compactor.table.upkeep import KeepRule

    name, table = _table(app).name, app.settings.table
    removes = table.merged_originals == "remove"
    days = table.keep_snapshot_days if keep_days is None else keep_days
    least = KEEP_SNAPSHOTS if keep_snapshots is None else keep_snapshots
    return Maintainer(
        state=app.state,
        batches=TableBatches(app.state),
        catalog=table_catalog(app),
        name=name,
        rule=KeepRule(timedelta(days=days), least),
        committer=committer(app) if removes else None,
    )


def table_commits(app: App, publisher: "Publisher", leads: Callable[[], bool] | None) -> "TableCommits | None":
    """Create the committer of a job's published manifests; None without a table sink.

    Args:
        app: The ports.
        publisher: Brings them to done.
        leads: For one of several shards: returns whether it commits for all.
    """
    if not app.settings.has_table:
        return None
    from compactor.job.table_commits import CommitTurns, TableCommits
    from compactor.ledger.table.progress import ProgressNotes

    table, shard = app.settings.table, app.settings.shard.number if app.settings.shard else 1
    return TableCommits(
        committer=committer(app),
        publisher=publisher,
        notes=ProgressNotes(app.state, app.run_id, shard),
        turns=CommitTurns(app.state, shard, leads) if leads is not None else None,
        clock=app.clock,
        metrics=app.metrics,
        commit_seconds=table.commit_seconds,
        max_waiting=MOST_WAITING_MANIFESTS,
    )


def table_tasks(app: App, leads: Callable[[], bool]) -> "list[Task]":
    """The tasks that maintain and merge the table during a job, as configured; empty without a table sink."""
    if not app.settings.has_table:
        return []
    from compactor.upkeep.tasks import Task

    def task(name: str, hours: float, work: Callable[[App], dict[str, int]]) -> Task:
        def run(_is_stopping: object) -> None:
            log_event("table.upkeep_done", task=name, done=work(app))

        return Task(name=name, every_seconds=hours * 3600, run=run, leads=leads)

    table = app.settings.table
    tasks = (
        task("table maintain", table.maintain_hours, _maintained),
        task("table merge", table.merge_hours, _merged),
    )
    return [each for each in tasks if each.every_seconds]


def _maintained(app: App) -> dict[str, int]:
    report = maintainer(app).maintain()
    return {
        "expired_snapshots": report.expired_snapshots,
        "merged_manifests": report.merged_manifests,
        "removed_files": report.removed_files,
        "removed_originals": report.removed_originals,
    }


def _merged(app: App) -> dict[str, int]:
    report = merger(app).merge()
    return {
        "merged_files": report.merged_files,
        "made_files": report.made_files,
        "not_merged": len(report.not_merged),
        "removed_files": report.removed_files,
    }


def _merged_files(app: App) -> "MergedFiles":
    from compactor.table.merging.writing import MergedFiles

    return MergedFiles(app.store, app.layout.compression)


def _table(app: App, why: str = "") -> ListedTable:
    table = listed_table(app)
    if table is None:
        raise SettingsError([f'table.name: "" -> expected the name of a table{why}'])
    return table

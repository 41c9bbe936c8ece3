"""Keeps the output's table small: merges its manifests, expires snapshots, and removes metadata files.

Each change asserts the head on which it was decided. After any response the table is read again and the change decided
anew, so nothing depends on the catalog's responses, and changes by other processes are seen. The next call finds what a
killed one left. Files with rows belong to the ledger: none is removed, except merged ones if requested.

Erasing metadata goes further, after rows were erased: a manifest has the minimum and maximum values of its files. No
change can need files that only earlier snapshots listed: a change prepared on an earlier snapshot cannot land. So no
minimum age is needed.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from compactor.core.documents.table_records import DoomedMetadata
from compactor.core.errors import TableCommitUnknown, TableConflict
from compactor.core.text.formatting import count
from compactor.ledger.state import State
from compactor.ledger.table.batches import TableBatches
from compactor.ops.table.removing import removable_originals, remove_originals
from compactor.table.catalog import TableCatalog, TableHead
from compactor.table.committer import Committer
from compactor.table.named import check_fence
from compactor.table.upkeep import KeepRule, MetadataFile, TableHistory, expired, leftovers, needs_merge


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """The results of upkeep. With `--dry-run` nothing is changed."""

    table: str  # the table's name
    exists: bool = False  # whether it exists
    keeps_all: bool = False  # whether its property gc.enabled is false, so that nothing expires or is removed
    merged_manifests: int = 0  # merged manifests; 0 if there were few enough
    expired_snapshots: int = 0  # expired snapshots
    snapshots: int = 0  # remaining snapshots
    lists_files: bool = True  # whether this client can list the metadata files; if not, none are removed
    removed_files: int = 0  # removed metadata files; none of them has rows
    removed_bytes: int = 0  # their total size
    removed_originals: int = 0  # removed row files: merged files have their rows, and nothing needs them
    removed_original_bytes: int = 0  # their total size
    dry_run: bool = False  # whether nothing was changed


TRIES = 5
"""How often a change is decided again because the table moved on, or the response was inconclusive."""

EXPIRED_AT_ONCE = 1000
"""Snapshots expired per change, so that each change fits between two commits of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintainer:
    """Does the table's upkeep. Safe while jobs and other upkeep run.

    Attributes:
        rule: Which snapshots stay.
        always_merges: Merge even few manifests: current ones may have minimum and maximum values of deleted files.
        committer: Commits the batches that release merged originals; None if originals stay.
    """

    state: State
    batches: TableBatches
    catalog: TableCatalog
    name: str
    rule: KeepRule
    always_merges: bool = False
    committer: Committer | None = None

    def maintain(self, *, dry_run: bool = False) -> UpkeepReport:
        """Do what is due, or only report it.

        Raises:
            TryAgainError: The catalog or the store does not respond, or the table keeps changing. Completed work stays;
                another call does the rest.
            OperatorError: An operator must act: the catalog refuses, or the table does not belong to this ledger.
        """
        if (found := self._read()) is None:
            return UpkeepReport(self.name, dry_run=dry_run)
        keeps_all = found[1].keeps_all
        if dry_run:
            now, history = self.state.clock.now(), found[1]
            going = expired(history, self.rule, now)
            merged = len(history.manifest_bytes) if needs_merge(history) else 0
            gone, left = len(going), len(history.snapshots) - len(going)
            files = [] if keeps_all else self._leftovers(going, since=now if merged else None)
        else:
            merged = self._merge()
            gone, left = self._expire()
            files = [] if keeps_all else self._leftovers()
        leaving = files or []
        if leaving and not dry_run:
            self.catalog.remove(each.name for each in leaving)
        originals, original_bytes = 0, 0
        if self.committer is not None and not keeps_all:
            remove = removable_originals if dry_run else remove_originals
            originals, original_bytes = remove(self.committer)
        return UpkeepReport(
            self.name,
            exists=True,
            keeps_all=keeps_all,
            merged_manifests=merged,
            expired_snapshots=gone,
            snapshots=left,
            lists_files=files is not None,
            removed_files=len(leaving),
            removed_bytes=sum(each.size_bytes for each in leaving),
            removed_originals=originals,
            removed_original_bytes=original_bytes,
            dry_run=dry_run,
        )

    def _merge(self) -> int:
        """Merge manifests once if there are too many; return how many were merged."""
        merged = 0
        for tried in range(1, TRIES + 1):
            head, history = self._found()
            if not (needs_merge(history) or (self.always_merges and history.snapshots)):
                break
            try:
                merged = len(history.manifest_bytes)
                self.catalog.merge_manifests(head)
                break
            except (TableConflict, TableCommitUnknown) as error:
                if tried == TRIES:
                    raise
                if isinstance(error, TableConflict):
                    merged = 0  # another process may have merged them by the next round
        return merged

    def _expire(self) -> tuple[int, int]:
        """Expire snapshots until none is due; return how many expired, and how many are left."""
        sent, failures, before = set[int](), 0, 0
        failure: TableConflict | TableCommitUnknown | None = None
        while True:
            head, history = self._found()
            there = {each.snapshot_id for each in history.snapshots}
            due = expired(history, self.rule, self.state.clock.now())
            if not due:
                return len(sent - there), len(there)
            failures = failures + 1 if sent and len(due) >= before else 0
            if failures == TRIES:
                raise failure or TableConflict(f"table {self.name}: {len(due)} snapshots do not expire")
            before, part = len(due), due[:EXPIRED_AT_ONCE]
            sent.update(part)
            try:
                self.catalog.expire(head, part)
            except (TableConflict, TableCommitUnknown) as error:
                failure = error

    def _leftovers(self, without: Collection[int] = (), since: datetime | None = None) -> list[MetadataFile] | None:
        """The files that may be removed; None if they cannot be listed.

        A dry run looks ahead: as if these snapshots had expired, and the current one was made at a different time.
        """
        folder = self.catalog.folder(without)
        if folder is None:
            return None
        return leftovers(replace(folder, current_since=since or folder.current_since), self.state.clock.now())

    def _found(self) -> tuple[TableHead, TableHistory]:
        found = self._read()
        if found is None:
            raise TableConflict(f"table {self.name}: it was dropped meanwhile")
        return found

    def _read(self) -> tuple[TableHead, TableHistory] | None:
        """The table, if it took the recorded batches; a different table may have to be restored."""
        finished, found = self.batches.finished(), self.catalog.history()
        if found is None:
            return None
        head = found[0]
        head.check_owner(self.state.layout.table_owner)
        if head.fence:
            self.batches.taken(head.fence, head.fence)
        check_fence(head.fence, finished)
        return found


_BY_COMMITS = ".avro"  # manifests and their lists; other metadata files contain no values


def erase_metadata(maintainer: Maintainer) -> list[str]:
    """Expire snapshots and remove their files; return why any remain, in words. Safe while jobs and other calls run.

    The maintainer must always merge manifests, and expire all snapshots but the current one.

    Raises:
        TryAgainError: As `Maintainer.maintain`; another call continues.
        OperatorError: An operator must act.
    """
    state, catalog, names = maintainer.state, maintainer.catalog, list[str]()
    if (before := catalog.folder()) is not None:
        # guard: an interrupted erasure finds the table metadata to remove
        names = sorted({*_doomed(state), *before.named})
        state.store.put(state.layout.doomed_metadata, DoomedMetadata(names=names).to_json())
    report = maintainer.maintain()
    if report.keeps_all:
        return ["the table's property gc.enabled is false, so its earlier snapshots stay, with values of rows"]
    after = catalog.folder() if before is not None else None
    if after is None:
        where = "the metadata files of the table cannot be listed: its catalog must remove earlier ones itself"
        return [where] if report.exists else []
    going = {*names} - after.named  # guard: an erasure keeps metadata that the table needs
    unneeded = {each.name for each in after.files if each.name.endswith(_BY_COMMITS)} - after.named
    catalog.remove(unneeded & going)
    kept = _kept(catalog)
    if not kept and _doomed(state) <= {*names}:  # another erasure may have added some
        state.store.delete([state.layout.doomed_metadata])
    if left := len(unneeded - going):
        them = count(left, "metadata file")
        kept.append(f"{them} of failed commits may contain values: `compactor table maintain` removes them a day later")
    return kept


def _doomed(state: State) -> frozenset[str]:
    found = DoomedMetadata.find(state.store, state.layout.doomed_metadata, "names of files")
    return frozenset(found.names) if found is not None else frozenset()


def _kept(catalog: TableCatalog) -> list[str]:
    """Why earlier snapshots stay, if anything asks the table to keep them."""
    found = catalog.history()
    if found is None:
        return []
    head, history = found
    asking = sum(
        each.snapshot_id != head.snapshot_id or bool(each.keep_for) or each.keep_snapshots > 1 for each in history.refs
    )
    if not asking:
        return []
    them = count(asking, "branch, tag or property", "branches, tags or properties")
    return [f"{them} of the table may keep earlier snapshots, with values of rows: remove them, then run it again"]

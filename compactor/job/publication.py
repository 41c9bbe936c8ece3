"""Finishes a decided manifest: publishes it, redrives what it deferred, records done, and cleans up.

Any driver may repeat every step.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit, DeadLetter, StagedFile
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Accepted, FileStatus, Redrive
from compactor.core.errors import AccessError, ObjectNotFound, StagingLost, StuckError
from compactor.core.layout import ManifestKey, digest, number_of_redrive, redriven_id
from compactor.core.map_ordered import map_ordered
from compactor.core.text.safe_text import quoted
from compactor.engines.columns_file import ColumnsFile
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ledger.table.orphans import InPlaceFiles

if TYPE_CHECKING:
    from compactor.table.committer import Committer


@dataclass(frozen=True, slots=True)
class Publisher:
    """Brings decided manifests to done.

    Attributes:
        table: Takes a commit's files before it is done; None without a table sink.
        columns: Maintains the columns file for readers of folders; None with a table sink, which has all columns
            itself.
    """

    state: State
    on_crash_point: OnCrashPoint = ignore_crash_point
    table: "Committer | None" = None
    columns: ColumnsFile | None = None

    def roll_forward(self, accepted: Accepted, outcome: Commit | DeadLetter) -> datetime:
        """Publish an outcome's files, record done, and clean up.

        Returns:
            When it was done. From then on, readers see all its files.
        """
        outcome_there = self.place(accepted, outcome)
        if self.table is not None and isinstance(outcome_there, Commit):
            self.table.take_now(outcome_there)
        return self.finish(accepted, outcome_there)

    def place(self, accepted: Accepted, outcome: Commit | DeadLetter) -> Commit | DeadLetter:
        """Publish an outcome's files; return it, or that of a later generation that superseded it."""
        if isinstance(outcome, Commit):
            # guard: done is recorded only after all files are in their final places
            if not self._publish(outcome) and (newer := self._superseding(outcome)) is not None:
                return self.place(accepted, newer)
            if accepted.manifest is not None:  # guard: deferred files are redriven before done is on record
                self._redrive_deferred(accepted.manifest, outcome)
        else:
            self._bury(accepted, outcome)
        self.on_crash_point(CrashPoint.PUBLISHED, accepted.manifest_id)
        return outcome

    def finish(self, accepted: Accepted, outcome: Commit | DeadLetter) -> datetime:
        """Record done, and clean up; see `roll_forward`."""
        if self.table is not None and isinstance(outcome, Commit) and outcome.is_rebuilt:
            self._delete_replaced(outcome)
        done_at = self.state.ledger.finish(outcome.key)  # guard: staging is deleted after done is on record
        if outcome.generation > 1:
            self.state.ledger.finish(outcome.key, outcome.generation)
        self.on_crash_point(CrashPoint.DONE, accepted.manifest_id)
        self.clean_up(accepted, outcome)
        return done_at

    def _publish(self, commit: Commit) -> bool:
        """Put every file in its final place; return False if another driver is further ahead."""
        if commit.is_rebuilt:
            self._make_way(commit)
        self.cover_columns(commit.schema_version)
        publish = map_ordered if commit.partition_by else map  # with partitions, there may be many files
        for is_published in publish(partial(self._publish_file, commit), (*commit.outputs, *commit.rejects)):
            if not is_published:
                return False
            self.on_crash_point(CrashPoint.PUBLISHED_ONE, commit.manifest_id)
        return True

    def _redrive_deferred(self, manifest: Manifest, commit: Commit) -> None:
        """Redrive the files that a commit deferred, once. Their claims stay with its manifest.

        No one else redrives them before the manifest is done.
        """
        log = RedriveLog(state=self.state)
        root = log.root_of(commit.manifest_id) if commit.deferred else None
        if root is None:
            return
        # All drivers read the same records in the same order, one by one: together they may be large.
        for number in count(number_of_redrive(commit.manifest_id, root.id) + 1):
            # Asked first: a redrive is recorded before its id is bound.
            is_bound = self.state.store.stat(self.state.layout.accepted(redriven_id(root.id, number))) is not None
            redrive = log.at(root, number)
            if redrive is None and not is_bound:
                if log.write(root, self._redrive(root, number, manifest, commit), self.on_crash_point):
                    return
                redrive = log.at(root, number)
            # guard: deferred files are redriven once
            if redrive is not None and redrive.source == commit.manifest_id and redrive.kind == "files":
                if not is_bound:
                    log.deliver(redrive)
                return

    def _redrive(self, root: ManifestKey, number: int, manifest: Manifest, commit: Commit) -> Redrive:
        now, deferred = self.state.clock.now(), commit.deferred
        files = tuple(file for file in manifest.files if file.uri in deferred)
        following = {"manifest_id": redriven_id(root.id, number), "created_at": now, "files": files}
        return Redrive(
            kind="files",
            source=commit.manifest_id,
            number=number,
            counts={FileStatus.DEFERRED: len(files)},
            manifest=manifest.model_copy(update=following),
            run_id=self.state.ledger.run_id,
            redriven_at=now,
        )

    def cover_columns(self, version: int) -> None:
        if self.columns is not None:
            self.columns.cover(version)

    def _make_way(self, commit: Commit) -> None:
        """Delete files of earlier generations: first those that a driver could still publish, then the published ones.

        The names deleted here are never reused, so a late driver does no harm.

        Raises:
            StuckError: Deleting output is not permitted.
        """
        # guard: what is left of earlier staging is deleted before a rebuild is published
        self.delete_staging(commit.manifest_id, upto=commit.generation - 1)
        # guard: files that a rebuild replaces stay until the table has others
        if self.table is None:  # readers of a table need the files until the table has others
            self._delete_replaced(commit)

    def _delete_replaced(self, commit: Commit) -> None:
        # The job may lack permission to delete output: it can finish a rebuild with nothing left to delete.
        left = [uri for uri in commit.removes if self.state.store.stat(uri) is not None]
        try:
            # guard: what could double rows is deleted before the files of a rebuild are published
            self.state.store.delete(left)
        except AccessError as exc:
            raise StuckError(
                f"manifest {commit.manifest_id}: {exc}; expected permission to delete the files that its rebuild "
                f"replaces; with it, `compactor rebuild --manifest {quoted(commit.manifest_id)}` finishes it"
            ) from exc

    def _publish_file(self, commit: Commit, file: StagedFile) -> bool:
        if self._has_file(commit, file):
            return True
        if not file.is_in_place:
            with suppress(ObjectNotFound):
                self.state.store.copy(file.staged, file.final)
                return True
        return self._is_published(commit, file)

    def _is_published(self, commit: Commit, file: StagedFile) -> bool:
        """Whether a missing file may count as published; False if another driver is further ahead.

        Raises:
            StagingLost: It is lost.
        """
        # Staging is only removed after done: another driver was faster, and there is nothing left to publish. A rebuild
        # removes the files of the commit that it replaces.
        # guard: a driver that finds its staging deleted looks for done
        if self.state.ledger.is_done(commit.key, commit.generation):
            return False
        # guard: a driver that finds an older commit's staging deleted looks for a rebuild
        if self._superseding(commit) is not None:
            return False
        published = self.state.store.stat(file.final)
        # A file from an earlier generation may have the same name and length.
        # guard: a file of an earlier generation does not count as published
        if published is None or published.size_bytes != file.size_bytes or commit.is_rebuilt:
            found = "nothing" if published is None else f"{published.size_bytes} bytes"
            raise StagingLost(
                f"manifest {commit.manifest_id} is committed, but {file.staged} disappeared before it was "
                f"published: found {found} at {file.final}, expected {file.size_bytes} bytes; "
                f"`compactor rebuild --manifest {quoted(commit.manifest_id)}` recreates its rows from the input"
            )
        return True

    def _has_file(self, commit: Commit, file: StagedFile) -> bool:
        """Whether a file is in its final place: written there, or published by a driver.

        A file that the table may have by now is not rewritten. Only a manifest's first commit has written under its
        names, and no two attempts write in place under the same names.
        """
        if not file.is_in_place and (self.table is None or commit.generation > 1):
            return False
        published = self.state.store.stat(file.final)
        return published is not None and published.size_bytes == file.size_bytes

    def _superseding(self, commit: Commit) -> Commit | None:
        """The commit of a later generation, if the manifest was rebuilt meanwhile."""
        newest = self.state.ledger.outcome(commit.key)
        return newest if isinstance(newest, Commit) and newest.generation > commit.generation else None

    def _bury(self, accepted: Accepted, dead_letter: DeadLetter) -> None:
        manifest_id = dead_letter.manifest_id
        self.state.store.put(
            self.state.layout.failure_reason(manifest_id), dead_letter.model_dump_json(indent=2).encode()
        )
        self._keep_original(accepted, dead_letter.source_uri, self.state.layout.failed_manifest(manifest_id))

    def _keep_original(self, accepted: Accepted, source: str, target: str) -> None:
        if self.state.store.stat(target) is not None:
            return
        if self._is_unchanged(source, accepted.digest):
            try:
                self.state.store.copy(source, target)
            except ObjectNotFound:
                # Another driver deleted it after copying it to the same place.
                if self.state.store.stat(target) is None:
                    raise
        elif accepted.manifest is not None:
            # The object was removed or replaced after acceptance; the ledger still has its content.
            self.state.store.put(target, accepted.manifest.to_json())

    def clean_up(self, accepted: Accepted, outcome: Commit | DeadLetter) -> None:
        """Mark it as unsummarised, delete staging, move it out of the watched prefix, and delete its open marker.

        The mark comes first: without it, nothing would lead to a manifest that is neither open nor in the watched
        prefix.
        """
        manifest_id = outcome.manifest_id
        # guard: a done manifest is marked for the next summary
        self.state.ledger.mark_unsummarised(outcome)
        self.delete_staging(manifest_id, upto=outcome.generation)
        # guard: a manifest that is done leaves no orphans
        if self.table is not None and all(file.is_in_place for file in _rows(outcome)):
            self.delete_orphans(outcome)
        self.on_crash_point(CrashPoint.UNSTAGED, manifest_id)
        if isinstance(outcome, Commit):
            target = self.state.layout.archived_manifest(outcome.key)
            self._keep_original(accepted, accepted.source_uri, target)
        self.remove_delivery(accepted.source_uri, accepted.digest)
        self.on_crash_point(CrashPoint.ARCHIVED, manifest_id)
        self.state.ledger.close(manifest_id, outcome.generation)
        self.on_crash_point(CrashPoint.CLOSED, manifest_id)

    def delete_staging(self, manifest_id: str, *, upto: int) -> None:
        """Delete the staging of attempts up to a generation: a rebuild may be staging the next one."""
        layout = self.state.layout
        staged = (info.uri for info in self.state.store.list(layout.staging_of(manifest_id)))
        # guard: clean-up leaves the staging of a rebuild
        self.state.store.delete([uri for uri in staged if layout.staged_generation(uri) <= upto])

    def delete_orphans(self, outcome: Commit | DeadLetter) -> None:
        """Delete files that other attempts wrote in place, if permitted; the cleaner finds the rest."""
        with suppress(AccessError, ObjectNotFound):
            self.state.store.delete([info.uri for info in InPlaceFiles(self.state).orphans_of(outcome)])

    def remove_delivery(self, uri: str, fingerprint: str) -> None:
        """Delete a delivered object from the watched prefix, unless its content has changed."""
        # guard: a manifest object that was changed is not removed
        if self._is_unchanged(uri, fingerprint):
            self.state.store.delete([uri])

    def _is_unchanged(self, uri: str, fingerprint: str) -> bool:
        info = self.state.store.stat(uri)
        if info is None:
            return False
        try:
            return fingerprint == digest(info.etag.encode()) or fingerprint == digest(self.state.store.read(uri))
        except ObjectNotFound:
            return False


def _rows(outcome: Commit | DeadLetter) -> list[StagedFile]:
    return outcome.outputs if isinstance(outcome, Commit) else []

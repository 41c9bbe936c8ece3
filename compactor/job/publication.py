"""Carries a decided manifest to its end: final places, done, clean-up. Every step may be repeated by anybody."""

from datetime import datetime

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.errors import ObjectNotFound, StagingLost
from compactor.core.layout import Layout, digest
from compactor.core.ports import ObjectStore
from compactor.core.records import Accepted, Commit, DeadLetter, StagedFile
from compactor.ledger.ledger import Ledger


class Publisher:
    """Rolls decided manifests forward.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: Records done.
        on_crash_point: Told of each step.
    """

    def __init__(
        self, store: ObjectStore, layout: Layout, ledger: Ledger, *, on_crash_point: OnCrashPoint = ignore_crash_point
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._on_crash_point = on_crash_point

    def roll_forward(self, accepted: Accepted, outcome: Commit | DeadLetter) -> datetime:
        """Publish what the outcome names, record done, and clean up.

        Returns:
            When it was done: from then on all of it is to be seen.
        """
        if isinstance(outcome, Commit):
            self._publish(outcome)
        else:
            self._bury(accepted, outcome)
        self._on_crash_point(CrashPoint.PUBLISHED, accepted.manifest_id)
        done_at = self._ledger.finish(outcome.key)
        self._on_crash_point(CrashPoint.DONE, accepted.manifest_id)
        self.clean_up(accepted, outcome)
        return done_at

    def _publish(self, commit: Commit) -> None:
        for file in (*commit.outputs, *commit.rejects):
            if not self._publish_file(commit, file):
                return
            self._on_crash_point(CrashPoint.PUBLISHED_ONE, commit.manifest_id)

    def _publish_file(self, commit: Commit, file: StagedFile) -> bool:
        try:
            self._store.copy(file.staged, file.final)
        except ObjectNotFound as exc:
            # Staging is only removed after done: then another driver was faster, and there is nothing left to publish.
            if self._ledger.is_done(commit.key):
                return False
            published = self._store.stat(file.final)
            if published is None or published.size_bytes != file.size_bytes:
                found = "nothing" if published is None else f"{published.size_bytes} bytes"
                raise StagingLost(
                    f"manifest {commit.manifest_id} is committed, but {file.staged} is gone before it was published: "
                    f"found {found} at {file.final}, expected {file.size_bytes} bytes; restore either of them, and the "
                    "next run goes on"
                ) from exc
        return True

    def _bury(self, accepted: Accepted, dead_letter: DeadLetter) -> None:
        manifest_id = dead_letter.manifest_id
        self._store.put(self._layout.failure_reason(manifest_id), dead_letter.model_dump_json(indent=2).encode())
        self._keep_original(accepted, dead_letter.source_uri, self._layout.failed_manifest(manifest_id))

    def _keep_original(self, accepted: Accepted, source: str, target: str) -> None:
        if self._store.stat(target) is not None:
            return
        if self._still_says(source, accepted.digest):
            try:
                self._store.copy(source, target)
            except ObjectNotFound:
                # Another driver, which puts it in the same place before it removes it here.
                if self._store.stat(target) is None:
                    raise
        elif accepted.manifest is not None:
            # Somebody removed or replaced the object after it was accepted; the ledger still knows what it said.
            self._store.put(target, accepted.manifest.to_json())

    def clean_up(self, accepted: Accepted, outcome: Commit | DeadLetter) -> None:
        """Remove staging, take the manifest out of the watched prefix, and forget that it was open."""
        manifest_id = outcome.manifest_id
        self._store.delete([info.uri for info in self._store.list(self._layout.staging_of(manifest_id))])
        self._on_crash_point(CrashPoint.UNSTAGED, manifest_id)
        if isinstance(outcome, Commit):
            target = self._layout.archived_manifest(outcome.key)
            self._keep_original(accepted, accepted.source_uri, target)
        self.remove_delivery(accepted.source_uri, accepted.digest)
        self._on_crash_point(CrashPoint.ARCHIVED, manifest_id)
        self._ledger.close(manifest_id)
        self._on_crash_point(CrashPoint.CLOSED, manifest_id)

    def remove_delivery(self, uri: str, fingerprint: str) -> None:
        """Take one delivered object out of the watched prefix, unless it says something else by now."""
        if self._still_says(uri, fingerprint):
            self._store.delete([uri])

    def _still_says(self, uri: str, fingerprint: str) -> bool:
        info = self._store.stat(uri)
        if info is None:
            return False
        try:
            return fingerprint == digest(info.etag.encode()) or fingerprint == digest(self._store.read(uri))
        except ObjectNotFound:
            return False

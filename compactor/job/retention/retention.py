"""Says why something that is old enough to go has to stay: nothing goes that is not committed and done."""

from collections.abc import Callable, Iterable

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout, redriven_owner
from compactor.core.manifest_key import ManifestKey
from compactor.core.ports import ObjectStore
from compactor.core.records import Accepted, Commit, DeadLetter, FileStatus
from compactor.ledger.ledger import Ledger


class Retention:
    """Knows what has to stay. Each answer is a reason in words, or empty if nothing speaks for keeping it.

    Args:
        store: Where the open markers are.
        layout: The places.
        ledger: Knows what is committed and done.
        living_runs: Those of some runs that are at work.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        living_runs: Callable[[Iterable[str]], frozenset[str]],
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._living_runs = living_runs

    def why_keep_archived(self, uri: str) -> str:
        """About an archived manifest."""
        owner = self._layout.archived_key(uri)
        if owner is None:
            return "its name is that of no archived manifest"
        found = self._done_commit(owner)
        return found if isinstance(found, str) else ""

    def why_keep_redriven(self, manifest_id: str) -> str:
        """About the lines that were put back for a manifest."""
        accepted = self._accepted(manifest_id)
        if isinstance(accepted, str):
            return accepted
        commit = self._done_commit(accepted.key)
        if isinstance(commit, str):
            return commit
        place = self._layout.redriven_folder
        aside = any(
            file.status != FileStatus.COMPACTED and redriven_owner(file.uri, place) == manifest_id
            for file in commit.files
        )
        return "files of it were set aside" if aside else ""

    def why_keep_staged(self, manifest_id: str) -> str:
        """About the staging of a manifest, to which nobody wrote for long."""
        if self._store.stat(self._layout.open_marker(manifest_id)) is not None:
            return "its manifest is open"
        accepted = self._accepted(manifest_id)
        if isinstance(accepted, str):
            return accepted
        outcome = self._outcome(accepted.key)
        if isinstance(outcome, str):
            return outcome
        is_done = self._ledger.is_done(accepted.key)
        return "its commit is not done" if isinstance(outcome, Commit) and not is_done else ""

    def why_keep_checkpoint(self, name: str) -> str:
        """About the checkpoint of a run, by the name of its folder."""
        run_id = name.rpartition("-")[0]  # a run numbers its checkpoints
        return "its run is at work" if self._living_runs([run_id]) else ""

    def _accepted(self, manifest_id: str) -> Accepted | str:
        try:
            accepted = self._ledger.accepted(manifest_id)
        except RecordUnreadable:
            return "the record of its acceptance cannot be read"
        return accepted or "its manifest is not on record"

    def _outcome(self, key: ManifestKey) -> Commit | DeadLetter | str | None:
        try:
            return self._ledger.outcome(key)
        except ObjectNotFound:
            return None
        except RecordUnreadable:
            return "its outcome cannot be read"

    def _done_commit(self, key: ManifestKey) -> Commit | str:
        """The commit of a manifest of which everything is in its final place, or why there is none."""
        outcome = self._outcome(key)
        if isinstance(outcome, Commit):
            return outcome if self._ledger.is_done(key) else "its commit is not done"
        return outcome if isinstance(outcome, str) else "its manifest is not committed"

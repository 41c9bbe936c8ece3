"""Reads what a manifest, or redrives in its place, have of what links give to it, unless the manifest still waits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Accepted
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import ManifestKey
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State

Linked = TypeVar("Linked")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Links(Generic[Linked, Found]):
    """What links give to manifests.

    Attributes:
        drafts_folder: Where the draft of the manifest would be, for one of what links give to it.
        read: Reads what manifests have.
        has: Whether that has one of what links give.
    """

    drafts_folder: Callable[[Linked], str]
    read: Callable[[State, Sequence[tuple[ManifestKey, Manifest]]], Found]
    has: Callable[[Found, Linked], bool]

    def taken_in(self, state: State, manifest_id: str, linked: Sequence[Linked]) -> tuple[list[Linked], Found | None]:
        """What links give to a manifest and a job could have taken in by now, and what the manifest has.

        Args:
            state: Has the manifests.
            manifest_id: The manifest.
            linked: What links give to it.

        Returns:
            The links whose manifest does not wait any more; and what it, or its redrives, have. None if no job took any
            of them in.
        """
        found = self._read(state, manifest_id, linked)
        if found is not None:
            return list(linked), found
        waiting = {folder for folder in set(map(self.drafts_folder, linked)) if _waits(state, manifest_id, folder)}
        left = [each for each in linked if self.drafts_folder(each) not in waiting]
        # A job may have taken it in meanwhile.
        return left, self._read(state, manifest_id, linked) if left else None

    def _read(self, state: State, manifest_id: str, linked: Sequence[Linked]) -> Found | None:
        try:
            accepted = state.ledger.accepted(manifest_id)
        except RecordUnreadable:  # `verify` names it as such, too
            return None
        if accepted is None:
            return None
        made = [(accepted.key, accepted.manifest)] if accepted.manifest is not None else []
        found = self.read(state, made) if made else None
        if found is not None and all(self.has(found, each) for each in linked):
            return found
        try:
            redrives = list(_in_its_place(state, accepted))
        except RecordUnreadable:
            return found
        return self.read(state, [*made, *redrives]) if redrives else found


def _in_its_place(state: State, root: Accepted) -> Iterator[tuple[ManifestKey, Manifest]]:
    """The manifests that redrives made of a dead letter, or of those of its redrives, as far as none refused them."""
    for entry in RedriveLog(state=state).entries(root.key):
        if entry.redrive.kind not in {"manifests", "planned"} or entry.fate == "unwritten":
            continue
        manifest = entry.redrive.manifest
        accepted = state.ledger.accepted(manifest.manifest_id)
        if accepted is None:  # it waits
            yield manifest.key, manifest
        elif accepted.manifest is not None:
            yield accepted.key, accepted.manifest


def _waits(state: State, manifest_id: str, drafts_folder: str) -> bool:
    """Whether a manifest is written, or will be, because its draft is there."""
    draft = f"{drafts_folder}{manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(manifest_id)))

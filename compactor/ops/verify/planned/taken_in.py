"""Reads what a manifest has of what links give to it, unless the manifest still waits."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from compactor.core.documents.records import Accepted
from compactor.ledger.state import State

Linked = TypeVar("Linked")
Found = TypeVar("Found")


def taken_in(
    state: State,
    manifest_id: str,
    linked: Sequence[Linked],
    *,
    drafts_folder: Callable[[Linked], str],
    read: Callable[[State, Accepted], Found],
) -> tuple[list[Linked], Found | None]:
    """What links give to a manifest and a job could have taken in by now, and what the manifest has.

    Args:
        state: Has the manifests.
        manifest_id: The manifest.
        linked: What links give to it.
        drafts_folder: Where the draft of its manifest would be, for one of these.
        read: Reads what it has from the record of its acceptance.

    Returns:
        Those of which the manifest does not wait, and what it has; None if it was not taken in.
    """
    found = _read(state, manifest_id, read)
    if found is not None:
        return list(linked), found
    waiting = {folder for folder in set(map(drafts_folder, linked)) if _waits(state, manifest_id, folder)}
    left = [each for each in linked if drafts_folder(each) not in waiting]
    # A job may have taken it in meanwhile.
    return left, _read(state, manifest_id, read) if left else None


def _read(state: State, manifest_id: str, read: Callable[[State, Accepted], Found]) -> Found | None:
    accepted = state.ledger.accepted(manifest_id)
    return None if accepted is None or accepted.manifest is None else read(state, accepted)


def _waits(state: State, manifest_id: str, drafts_folder: str) -> bool:
    """Whether a manifest is written, or will be, because its draft is there."""
    draft = f"{drafts_folder}{manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(manifest_id)))

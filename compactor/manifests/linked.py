"""Makes manifests of drafts: written before their links, so that any planner can finish what another one began.

A planner writes the draft, then creates its links, then writes the manifest of the files whose links it got. A link is
there for good once it is there. So every planner that goes through these steps gets the same manifest, at any time and
any number of times: a planner that dies, or that is held up for hours, leaves nothing undecided.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compactor.core.documents.manifest import Manifest, ManifestFile, version_keys
from compactor.ledger.chains.chain import Chain, Link
from compactor.ledger.state import State


class PlannedLink(Link, Protocol):
    """A link that names the manifest which it gives its positions to."""

    @property
    def manifest_id(self) -> str:
        """The id of the manifest."""


L = TypeVar("L", bound=PlannedLink)


@dataclass(frozen=True, slots=True)
class Wanted(Generic[L]):
    """A link that a draft needs, and the files that it gives to the manifest."""

    chain: Chain[L]
    link: L
    files: Sequence[ManifestFile]


def settle(state: State, draft: Manifest, wanted: Iterable[Wanted[L]]) -> tuple[Manifest | None, list[Wanted[L]]]:
    """Create links and write the manifest of those that were got, as far as that was not done.

    Args:
        state: Where chains and manifests are.
        draft: Names all files.
        wanted: Those of one chain in order, the first where the chain ended when the draft was made.

    Returns:
        The manifest, or None if it has no file; and what others have.
    """
    won, lost = set[str](), list[Wanted[L]]()
    for each in wanted:
        # Behind a link of others, the next one of this draft would begin where no link ends.
        is_behind_lost = any(other.chain.folder == each.chain.folder for other in lost)
        if not is_behind_lost and each.chain.create(each.link).manifest_id == draft.manifest_id:
            won.update(file.uri for file in each.files)
        else:
            lost.append(each)
    files = tuple(file for file in draft.files if file.uri in won)
    # With the keys that are left out of a draft as it is read, or else its bytes would tell who settled it.
    manifest = draft.model_copy(update={"files": files, **version_keys(files)})
    if won and state.ledger.accepted(manifest.manifest_id) is None:
        state.store.create(state.layout.manifest(manifest.manifest_id), manifest.to_json())
    return (manifest if won else None), lost

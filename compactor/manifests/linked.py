"""Makes manifests of drafts: written before their links, so that any planner can finish what another one began.

A planner writes the draft, then creates its links, then binds the id of the manifest to the files whose links it got,
and writes it. A link is there for good once it is there. So every planner that goes through these steps gets the same
manifest, at any time and any number of times: a planner that dies, or that is held up for hours, leaves nothing
undecided. A draft stays until a job has begun with its manifest: one that is gone before is written again. As its id is
bound to its bytes, nothing else takes effect under it, and it takes effect once, however often it is written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from compactor.core.documents.manifest import Manifest, ManifestFile, version_keys
from compactor.core.documents.records import Accepted, read_record
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name, digest
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.chains.chain import Chain, Link
from compactor.ledger.state import State


class PlannedLink(Link, Protocol):
    """A link that names the manifest which it gives its positions to."""

    @property
    def manifest_id(self) -> str:
        """The id of the manifest."""


L = TypeVar("L", bound=PlannedLink)
D = TypeVar("D", bound=BaseModel)


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
    if won:
        _write(state, manifest)
    return (manifest if won else None), lost


def _write(state: State, manifest: Manifest) -> None:
    """Bind the id of a manifest and write it, unless a job has begun with it."""
    data, uri = manifest.to_json(), state.layout.manifest(manifest.manifest_id)
    record = state.ledger.accept(
        Accepted(
            manifest_id=manifest.manifest_id,
            kind="manifest",
            date=manifest.date,
            digest=digest(data),
            source_uri=uri,
            accepted_at=state.clock.now(),
            manifest=manifest,
        )
    )
    _write_bound(state, record)


def _write_bound(state: State, record: Accepted) -> bool:
    """Write the manifest that an id is bound to, unless a job has begun with it; False if the id is bound to none.

    Another release may have bound it, which writes a manifest otherwise. A job takes in the bytes of the record alone.
    """
    if record.manifest is None:
        return False
    data = record.manifest.to_json()
    if record.digest == digest(data) and not state.ledger.record_names(record.key):
        state.store.create(state.layout.manifest(record.manifest_id), data)
    return record.digest == digest(data)


def drafts_left(state: State, folder: str) -> list[ObjectInfo]:
    """The drafts in a folder that are to be settled: of planners that died, and of manifests that are gone too early.

    Those of manifests that a job has begun with are deleted.
    """
    drafts = list(state.store.list(folder))
    if not drafts:
        return []
    waiting = {info.uri for info in state.store.list(state.layout.manifests_folder)}
    absent = [info for info in drafts if state.layout.manifest(id_of_draft(info.uri)) not in waiting]
    begun = dict(zip(absent, map_ordered(lambda info: is_begun(state, id_of_draft(info.uri)), absent), strict=True))
    if over := [info.uri for info in absent if begun[info]]:
        state.store.delete(over)
    return [info for info in absent if not begun[info]]


def read_left(state: State, folder: str, kind: type[D]) -> tuple[list[D], list[RecordUnreadable]]:
    """The drafts in a folder that are to be settled, and why some cannot be read, which stay and hold up nothing else.

    A manifest whose id is bound is written from that record. No planner does without a draft before: one that has read
    it may still create links for it.

    Args:
        state: Has the drafts.
        folder: Of one topic id or stream id.
        kind: The class of its drafts.
    """
    found, unreadable = list[D](), list[RecordUnreadable]()
    for info in drafts_left(state, folder):
        try:
            found.append(read_draft(state, info.uri, kind))
        except ObjectNotFound:  # settled meanwhile
            continue
        except RecordUnreadable as exc:
            bound = state.ledger.accepted(id_of_draft(info.uri))
            if bound is None or not _write_bound(state, bound):
                unreadable.append(exc)
    return found, unreadable


def read_draft(state: State, uri: str, kind: type[D]) -> D:
    """Read one draft.

    Raises:
        ObjectNotFound: Its manifest needs it no longer.
        RecordUnreadable: It is damaged, or of a newer release.
    """
    expected = (
        "the draft of a manifest; restore an earlier version of it: nothing else says what the manifest is to have"
    )
    return read_record(kind.model_validate_json, state.store.read(uri), uri, kind=kind.__name__, expected=expected)


def id_of_draft(uri: str) -> str:
    """The id of the manifest of a draft."""
    return base_name(uri).removesuffix(".json")


def is_begun(state: State, manifest_id: str) -> bool:
    """Whether a job has begun with a planned manifest, so that its records are all that it needs."""
    accepted = state.ledger.accepted(manifest_id)
    return accepted is not None and accepted.kind == "manifest" and bool(state.ledger.record_names(accepted.key))

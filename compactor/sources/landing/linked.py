"""Makes manifests of drafts: written before their links, so that any planner can finish what another one began.

A planner writes the draft, then creates its links, then binds the id of the manifest to the files whose links it got,
and writes it. A link is there for good once it is there. So every planner that goes through these steps gets the same
manifest, at any time and any number of times: a planner that dies, or that is held up for hours, leaves nothing
undecided. A draft stays until a job has begun with its manifest: one that is gone before is written again. As its id is
bound to its bytes, nothing else takes effect under it, and it takes effect once, however often it is written. If the id
is bound to something else, because that was there before, the manifest becomes a redrive; see `handed_over`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compactor.core.documents.landing import LandingDraft
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import base_name, digest, redrive_number, root_id
from compactor.core.map_ordered import map_ordered
from compactor.ledger.landing.chain import Chain, Link
from compactor.ledger.landing.given import names_landed
from compactor.ledger.state import State
from compactor.sources.landing.handed_over import hand_over, has_same_files


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


@dataclass(frozen=True, slots=True)
class Outcome(Generic[L]):
    """What came of a draft.

    Attributes:
        manifest: The manifest that was written of what was got; None if there is none.
        lost: What others have.
        is_over: Whether the draft is not needed any more.
    """

    manifest: Manifest | None
    lost: Sequence[Wanted[L]]
    is_over: bool

    @property
    def has_begun(self) -> bool:
        """Whether a job has begun with the manifest."""
        return self.is_over and self.manifest is not None


def settle(state: State, draft: Manifest, wanted: Iterable[Wanted[L]]) -> Outcome[L]:
    """Create links and write the manifest of those that were got, as far as that was not done.

    Args:
        state: Where chains and manifests are.
        draft: Names all files.
        wanted: Those of one chain in order, the first where the chain ended when the draft was made.

    Raises:
        StuckError: A record of the manifest, or of a redrive of it, cannot be read.
    """
    won, lost = set[str](), list[Wanted[L]]()
    for each in wanted:
        # Behind a link of others, the next one of this draft would begin where no link ends.
        # guard: behind a link of others, no link of the same chain is created
        is_behind_lost = any(other.chain.folder == each.chain.folder for other in lost)
        # guard: a manifest has nothing whose link another one has
        if not is_behind_lost and each.chain.create(each.link).manifest_id == draft.manifest_id:
            won.update(file.uri for file in each.files)
        else:
            lost.append(each)
    if not won:
        return Outcome(None, lost, is_over=True)
    files = tuple(file for file in draft.files if file.uri in won)
    manifest, is_over = _written(state, draft.model_copy(update={"files": files}))
    return Outcome(manifest, lost, is_over)


def _written(state: State, planned: Manifest) -> tuple[Manifest | None, bool]:
    """Bind the id of a manifest and write it; return what was written, and whether a job has begun with it."""
    data, uri = planned.to_json(), state.layout.manifest(planned.manifest_id)
    record = state.ledger.accept(
        Accepted(
            manifest_id=planned.manifest_id,
            kind="manifest",
            date=planned.date,
            digest=digest(data),
            source_uri=uri,
            accepted_at=state.clock.now(),
            manifest=planned,
        )
    )
    begun = _is_begun(state, record)
    _write_bound(state, record, is_begun=begun)
    if record.manifest is not None and has_same_files(record.manifest, planned):
        return planned, begun
    # guard: what is planned for an id that something else has becomes a redrive
    made, has_begun = hand_over(state, record, planned)
    has_planned = record.manifest is not None and names_landed(state, record.manifest)
    return made, has_begun and (begun or not has_planned)


def _write_bound(state: State, record: Accepted, *, is_begun: bool) -> bool:
    """Write the manifest that an id is bound to, unless a job has begun with it; False if that is no planned one."""
    if record.manifest is None or not names_landed(state, record.manifest):
        return False
    data = record.manifest.to_json()
    is_its = record.digest == digest(data)
    if is_its and not is_begun:
        state.store.create(state.layout.manifest(record.manifest_id), data)
    return is_its


def drafts_left(state: State, folder: str) -> tuple[list[LandingDraft], list[RecordUnreadable]]:
    """The drafts in a folder that are to be settled, and why some cannot be read, which stay and hold up nothing else.

    A draft is left if its planner died, or if its manifest was lost before a job began with it. It is deleted only once
    a job has begun: until the id is bound, a planner that has read the draft may still create links for it. Once the id
    is bound, the manifest can be written from that record alone.

    Args:
        state: Has the drafts.
        folder: Of one log id.
    """
    drafts = [info.uri for info in state.store.list(folder)]
    if not drafts:
        return [], []
    waiting = {root_id(id_of_draft(info.uri)) for info in state.store.list(state.layout.manifests_folder)}
    absent = [uri for uri in drafts if id_of_draft(uri) not in waiting]
    left = list(map_ordered(lambda uri: _left(state, uri), absent))
    if over := [uri for uri, each in zip(absent, left, strict=True) if each.is_over]:
        state.store.delete(over)  # guard: a draft goes once a job has begun with its manifest
    found = [each.draft for each in left if each.draft is not None and not each.is_over]
    return found, [each.unreadable for each in left if each.unreadable is not None]


@dataclass(frozen=True, slots=True)
class _Left:
    """A draft: to be settled, or over, or why it cannot be read; none of these if another planner deleted it."""

    draft: LandingDraft | None = None
    is_over: bool = False
    unreadable: RecordUnreadable | None = None


def _left(state: State, uri: str) -> _Left:
    try:
        bound = state.ledger.accepted(id_of_draft(uri))
    except RecordUnreadable as exc:
        return _Left(unreadable=exc)
    try:
        draft = read_draft(state, uri)
    except ObjectNotFound:
        return _Left()
    except RecordUnreadable as exc:
        is_over = bound is not None and _is_begun(state, bound)
        if bound is None or not _write_bound(state, bound, is_begun=is_over):
            return _Left(unreadable=exc)
        return _Left(is_over=is_over)
    if bound is None or bound.manifest is None:
        return _Left(draft)
    return _Left(draft, is_over=has_same_files(bound.manifest, draft.manifest) and _is_begun(state, bound))


def read_draft(state: State, uri: str) -> LandingDraft:
    """Read one draft.

    Raises:
        ObjectNotFound: Its manifest needs it no longer.
        RecordUnreadable: It is damaged.
    """
    expected = (
        "the draft of a manifest; restore an earlier version of it: nothing else says what the manifest is to have"
    )
    return LandingDraft.read(state.store.read(uri), uri, expected)


def id_of_draft(uri: str) -> str:
    """The id of the manifest of a draft."""
    return base_name(uri).removesuffix(".json")


def is_begun(state: State, manifest_id: str) -> bool:
    """Whether a job has begun with a planned manifest, so that its records are all that it needs."""
    accepted = state.ledger.accepted(manifest_id)
    return accepted is not None and accepted.kind == "manifest" and _is_begun(state, accepted)


def _is_begun(state: State, record: Accepted) -> bool:
    # Redrives of a manifest that no job has begun with are among its records, too.
    return any(redrive_number(name) is None for name in state.ledger.record_names(record.key))

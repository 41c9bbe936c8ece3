"""Writes pieces of partitions as objects, and assigns each object to one manifest.

A planner writes an object before its link, under a name that contains its manifest's id. So no other planner writes the
object, and no other manifest may name it. The planner then writes a draft of the manifest, creates its links, binds the
manifest's id to the files whose links it won, and writes the manifest. Links are permanent. So every planner that takes
these steps gets the same manifest, at any time and any number of times: one that dies, or is delayed for hours, leaves
nothing undecided. A draft stays until a job has started its manifest: a manifest that is deleted before that is written
again. As its id is bound to its bytes, it takes effect once. If the id was already bound to different content, the
manifest becomes a redrive; see `handed_over`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compactor.core.documents.landing import LandedLink, LandingDraft
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound, RecordUnreadable, StoreUnavailable, StuckError
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.layout import base_name, digest, redrive_number, root_id
from compactor.core.logs.names import LogGap, LogName
from compactor.core.map_ordered import map_ordered
from compactor.ledger.landing.chains import Chain, LogChains, PartitionPlace
from compactor.ledger.landing.given import names_landed
from compactor.ledger.state import State
from compactor.sources.claiming import bind
from compactor.sources.landing.handed_over import hand_over, has_same_files
from compactor.telemetry.logs import log_event

if TYPE_CHECKING:  # verification uses drafts, and need not load the landing code
    from compactor.sources.landing.lines import RecordLines

SWEEP_SECONDS = 24 * 3600.0
"""Age at which a sweep looks for objects without a link. A planner may still be using younger ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of settling a draft.

    Attributes:
        manifest: The written manifest; None if others have all of its records, or if it has none.
        lost: Links that others won, and those that follow a lost one in their chain.
        gaps: Where records may be lost.
        has_begun: Whether a job has started the manifest.
    """

    manifest: Manifest | None
    links: Sequence[LandedLink]
    lost: Sequence[LandedLink] = ()
    gaps: Sequence[LogGap] = ()
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class Landing:
    """Lands the records of one log id."""

    chains: LogChains
    name: LogName
    log_id: str

    @property
    def state(self) -> State:
        return self.chains.state

    def place(self, partition_id: str) -> PartitionPlace:
        """A partition's chain."""
        return PartitionPlace(self.name, self.log_id, partition_id)

    def begin(self, manifest_id: str) -> None:
        """Mark that objects are being landed for a manifest, so that a sweep finds those that get no link."""
        self.state.store.create(self._mark(manifest_id), b"")

    def land(self, link: LandedLink, lines: "RecordLines") -> LandedLink:
        """Write a link's object, unless it has no lines; return the link with the object.

        Raises:
            StoreUnavailable: The object was written but is not visible.
        """
        store = self.state.store
        if not link.lines:
            return link
        place = f"{self.name.scheme}/{self.name.path}/{link.partition_id}"
        uri = f"{self.state.layout.landed_inputs(link.manifest_id)}{place}/{link.after}-{link.last}.ndjson.zst"
        data = lines.to_bytes()
        store.create(uri, data)
        info = store.stat(uri)
        if info is None:
            raise StoreUnavailable(f"{uri}: missing right after it was written")
        return link.model_copy(update={"uri": uri, "etag": info.etag, "size_bytes": len(data)})

    def drafted(self, manifest_id: str, links: Iterable[LandedLink]) -> LandingDraft:
        """Draft a manifest of landed objects and gaps; `links` are in order within each partition."""
        now, links, files = self.state.clock.now(), tuple(links), list[ManifestFile]()
        for link in links:
            if link.gap:  # guard: a manifest names what may be lost
                # A job finds no records there, and quarantines the file.
                files.append(ManifestFile(uri=str(self._gap(link)), size_bytes=0, etag=self.log_id))
            if link.lines:
                files.append(ManifestFile(uri=link.uri, size_bytes=link.size_bytes, etag=link.etag))
        dated = tuple(each.model_copy(update={"event_time": now, "dated_by": ARRIVAL}) for each in files)
        day = f"{now:%Y-%m-%d}"
        manifest = Manifest(manifest_id=manifest_id, date=day, created_at=now, files=dated, listed_at=now)
        return LandingDraft(manifest=manifest, links=links)

    def settle(self, draft: LandingDraft, *, is_new: bool = False) -> Settled:
        """Create a draft's links and write its manifest, as far as not done yet.

        Args:
            draft: The links of each chain are in order, starting where the chain ended when the draft was made.
            is_new: Write the draft first. From then on, others may settle it.

        Raises:
            StuckError: A record of the manifest, or of its redrive, cannot be read.
        """
        store, planned = self.state.store, draft.manifest
        if is_new:
            store.create(self._draft(planned.manifest_id), draft.to_json())
        got, lost = list[LandedLink](), list[LandedLink]()
        for link in draft.links:
            # After another planner's link, this draft's next link would start where no link ends.
            # guard: behind a link of others, no link of the same chain is created
            is_behind_lost = any(other.partition_id == link.partition_id for other in lost)
            # guard: a manifest has nothing whose link another one has
            is_got = not is_behind_lost and self._chain(link).create(link).manifest_id == planned.manifest_id
            (got if is_got else lost).append(link)
        gaps = [self._gap(link) for link in got if link.gap]
        uris = {*(link.uri for link in got), *map(str, gaps)}
        manifest, is_over = None, True
        if files := tuple(file for file in planned.files if file.uri in uris):
            manifest, is_over = _written(self.state, planned.model_copy(update={"files": files}))
        for gap in gaps:
            log_event("landing.gap", log=self.name, gap=gap)
        store.delete([link.uri for link in lost if link.uri])  # these can never get a link
        # guard: a draft stays until a job has started its manifest
        over = [self._draft(planned.manifest_id)] if is_over else []
        store.delete([self._mark(planned.manifest_id), *over])
        return Settled(manifest, got, lost, gaps, has_begun=is_over and manifest is not None)

    def settle_left(self) -> Iterator[Settled | StuckError]:
        """Settle drafts whose planner died, and those whose manifest was lost before a job started it.

        A draft is deleted only once a job has started: until the id is bound, a planner that has read the draft may
        still create links for it. Once the id is bound, the manifest can be written from that record alone.

        Yields:
            The result for each draft. One that cannot be settled stays, and does not block others.
        """
        state = self.state
        drafts = [info.uri for info in state.store.list(self.chains.drafts_folder(self.name, self.log_id))]
        if not drafts:
            return
        waiting = {root_id(id_of_draft(info.uri)) for info in state.store.list(state.layout.manifests_folder)}
        absent = [uri for uri in drafts if id_of_draft(uri) not in waiting]
        left, over = list[LandingDraft](), list[str]()
        for uri, draft in zip(absent, map_ordered(lambda uri: _left(state, uri), absent), strict=True):
            if isinstance(draft, RecordUnreadable):
                yield draft
            elif isinstance(draft, LandingDraft):
                left.append(draft)
            elif draft == "over":
                over.append(uri)  # guard: a draft is deleted once a job has started its manifest
        state.store.delete(over)
        for draft in left:  # guard: drafts that planners left are settled
            try:
                yield self.settle(draft)
            except StuckError as exc:
                yield exc

    def sweep(self, *, is_gone: bool = False) -> int:
        """Delete objects of planners that died before writing a draft; return how many.

        An object may be deleted once the link for its records names a different object: then it can never get a link,
        however long its planner was delayed.

        Args:
            is_gone: Whether a different log now has the name. No planner continues these chains, so the sweep ends
                them.
        """
        store, now, swept = self.state.store, self.state.clock.now(), 0
        for mark in list(store.list(self.chains.landing_folder(self.name, self.log_id))):
            if (now - mark.modified_at).total_seconds() < SWEEP_SECONDS:
                continue
            manifest_id = base_name(mark.uri)
            if is_gone and store.stat(self._draft(manifest_id)) is not None:
                continue  # it names the objects, and is settled once it can be read
            objects = [info.uri for info in store.list(self.state.layout.landed_inputs(manifest_id))]
            if is_gone:
                self._end(objects)
            links = {uri: self._link_with(uri) for uri in objects}
            useless = [uri for uri, link in links.items() if link is not None and link.uri != uri]
            store.delete(useless)
            swept += len(useless)
            if None not in links.values():
                store.delete([mark.uri])
        return swept

    def _link_with(self, uri: str) -> LandedLink | None:
        """The link with an object's first record; None if the object may still get it."""
        partition_id, after = _range_of(uri)
        chain = self.chains.chain(self.place(partition_id))
        link = chain.at(after) or chain.link_with(after)  # a longer link may cover it
        if link is not None:
            return link
        last = chain.last()
        return last if last is not None and last.closes else None  # guard: an object that may still get a link stays

    def _end(self, objects: Iterable[str]) -> None:
        for partition_id in sorted({_range_of(uri)[0] for uri in objects}):
            chain = self.chains.chain(self.place(partition_id))
            while (last := chain.last()) is None or not last.closes:
                end, now = "0" if last is None else last.last, self.state.clock.now()
                ends = {"after": end, "last": end}
                chain.create(LandedLink(partition_id=partition_id, manifest_id="", arrived_at=now, closes=True, **ends))

    def _chain(self, link: LandedLink) -> Chain:
        return self.chains.chain(self.place(link.partition_id))

    def _gap(self, link: LandedLink) -> LogGap:
        return self.place(link.partition_id).gap(link)

    def _draft(self, manifest_id: str) -> str:
        return f"{self.chains.drafts_folder(self.name, self.log_id)}{manifest_id}.json"

    def _mark(self, manifest_id: str) -> str:
        return f"{self.chains.landing_folder(self.name, self.log_id)}{manifest_id}"


def _range_of(uri: str) -> tuple[str, int]:
    """An object's partition and the position before its records, from its name."""
    folder, _, name = uri.rpartition("/")
    return base_name(folder), int(name.partition("-")[0])


def _written(state: State, planned: Manifest) -> tuple[Manifest | None, bool]:
    """Bind a manifest's id and write it; return what was written, and whether a job has started it."""
    record = bind(state, planned, planned.to_json(), state.layout.manifest(planned.manifest_id))
    begun = _is_begun(state, record)
    _write_bound(state, record, is_begun=begun)
    if record.manifest is not None and has_same_files(record.manifest, planned):
        return planned, begun
    # guard: what is planned for an id that something else has becomes a redrive
    made, has_begun = hand_over(state, record, planned)
    has_planned = record.manifest is not None and names_landed(state, record.manifest)
    return made, has_begun and (begun or not has_planned)


def _write_bound(state: State, record: Accepted, *, is_begun: bool) -> bool:
    """Write the manifest to which an id is bound, unless a job has started it; False if it was not planned."""
    if record.manifest is None or not names_landed(state, record.manifest):
        return False
    data = record.manifest.to_json()
    is_its = record.digest == digest(data)
    if is_its and not is_begun:
        state.store.create(state.layout.manifest(record.manifest_id), data)
    return is_its


def _left(state: State, uri: str) -> LandingDraft | RecordUnreadable | str:
    """A draft to settle, or why it cannot be read; else `over`, `written` again, or `gone` since it was listed."""
    try:
        bound = state.ledger.accepted(id_of_draft(uri))
    except RecordUnreadable as exc:
        return exc
    begun = bound is not None and _is_begun(state, bound)
    try:
        draft = read_draft(state, uri)
    except ObjectNotFound:
        return "gone"
    except RecordUnreadable as exc:
        if bound is None or not _write_bound(state, bound, is_begun=begun):
            return exc
        return "over" if begun else "written"
    is_its = bound is not None and bound.manifest is not None and has_same_files(bound.manifest, draft.manifest)
    return "over" if begun and is_its else draft


def read_draft(state: State, uri: str) -> LandingDraft:
    """Read a draft.

    Raises:
        ObjectNotFound: It was deleted, because its manifest no longer needs it.
        RecordUnreadable: It is damaged.
    """
    expected = "the draft of a manifest; restore an earlier version of it: nothing else has the manifest's content"
    return LandingDraft.read(state.store.read(uri), uri, expected)


def id_of_draft(uri: str) -> str:
    """The manifest's id, from the URI of its draft."""
    return base_name(uri).removesuffix(".json")


def is_begun(state: State, manifest_id: str) -> bool:
    """Whether a job has started a planned manifest, so that it needs only its records."""
    accepted = state.ledger.accepted(manifest_id)
    return accepted is not None and accepted.kind == "manifest" and _is_begun(state, accepted)


def _is_begun(state: State, record: Accepted) -> bool:
    # Redrives of a manifest that no job has started are among its records, too.
    return any(redrive_number(name) is None for name in state.ledger.record_names(record.key))

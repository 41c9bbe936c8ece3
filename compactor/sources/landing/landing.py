"""Writes the records of partitions as objects, and gives each object to one manifest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.core.documents.landing import (
    LandedLink,
    LandedLoss,
    LandingDraft,
    PartitionLink,
    PartitionLoss,
)
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import RecordUnreadable, StoreUnavailable
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.layout import base_name
from compactor.core.logs.names import LogGap, LogName
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.sources.landing.linked import Wanted, drafts_left, settle
from compactor.sources.landing.partition_reading import Piece
from compactor.telemetry.logs import log_event

SWEEP_SECONDS = 24 * 3600.0
"""Age at which objects are looked for that no link names: a planner may still be at work on younger ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a draft.

    Attributes:
        manifest: What was written; None if others have all of its records, or if it has none.
        links: The links that it got.
        lost: The partitions of those that others got.
        losses: The losses that it got.
        has_begun: Whether a job has begun with the manifest.
        gaps: Where records may be lost.
    """

    manifest: Manifest | None
    links: Sequence[PartitionLink]
    lost: frozenset[str]
    losses: Sequence[PartitionLoss] = ()
    has_begun: bool = False
    gaps: Sequence[LogGap] = ()


@dataclass(frozen=True, slots=True)
class Landing:
    """Lands the records of one log id.

    An object is written before its link, under a name that has the id of its manifest. So no other planner writes it,
    and no other manifest may name it.
    """

    chains: LogChains
    name: LogName
    log_id: str

    def begin(self, manifest_id: str) -> None:
        """Mark that objects are being landed for a manifest, so that those without a link are found later."""
        self.chains.state.store.create(self._mark(manifest_id), b"")

    def land(self, manifest_id: str, partition_id: str, piece: Piece) -> tuple[PartitionLink, int]:
        """Write the object of a piece, unless it has no line; return the link for it, and the length of the object.

        Raises:
            StoreUnavailable: The object cannot be seen although it was written.
        """
        link = link_of(piece, manifest_id)
        if not piece.lines.lines:
            return PartitionLink(partition_id=partition_id, link=link), 0
        store, uri = self.chains.state.store, self._object(manifest_id, partition_id, link)
        data = piece.lines.to_bytes()
        store.create(uri, data)
        info = store.stat(uri)
        if info is None:
            raise StoreUnavailable(f"{uri}: it is gone right after it was written")
        landed = link.model_copy(update={"uri": uri, "etag": info.etag})
        return PartitionLink(partition_id=partition_id, link=landed), len(data)

    def drafted(
        self,
        manifest_id: str,
        links: Sequence[PartitionLink],
        sizes: Sequence[int],
        losses: Sequence[PartitionLoss] = (),
    ) -> LandingDraft:
        """The manifest of landed objects, and of what may be lost.

        Args:
            manifest_id: For which they were landed.
            links: In the order of each partition.
            sizes: The length of the object of each.
            losses: What no link tells of.
        """
        now, files = self.chains.state.clock.now(), list[ManifestFile]()
        for each, size in zip(links, sizes, strict=True):
            link = each.link
            if link.gap:  # guard: a manifest names what may be lost
                files.append(self._lost(self._gap_of(each)))
            if link.lines:
                files.append(ManifestFile(uri=link.uri, size_bytes=size, etag=link.etag))
        files += [self._lost(self._loss_of(each)) for each in losses]
        dated = tuple(each.model_copy(update={"event_time": now, "dated_by": ARRIVAL}) for each in files)
        manifest = Manifest(
            manifest_id=manifest_id,
            date=f"{now:%Y-%m-%d}",
            created_at=now,
            files=dated,
            listed_at=now,
        )
        return LandingDraft(manifest=manifest, links=tuple(links), losses=tuple(losses))

    def settle(self, draft: LandingDraft, *, is_new: bool = False) -> Settled:
        """Create the links of a draft and write its manifest, as far as that was not done.

        The draft stays until a job has begun with the manifest.

        Args:
            draft: What is to be settled.
            is_new: Write the draft first. From then on, others may settle it.
        """
        state, manifest_id = self.chains.state, draft.manifest.manifest_id
        if is_new:
            state.store.create(self._draft(manifest_id), draft.to_json())
        named = {file.uri: file for file in draft.manifest.files}
        of_links = [self._wanted(each, named) for each in draft.links]
        of_losses = [self._wanted_loss(each, named) for each in draft.losses]
        wanted: list[Wanted[Any]] = [*of_links, *of_losses]
        outcome = settle(state, draft.manifest, wanted)
        missed = outcome.lost
        got = [each for each, want in zip(draft.links, of_links, strict=True) if want not in missed]
        lost = [each for each, want in zip(draft.links, of_links, strict=True) if want in missed]
        losses = [each for each, want in zip(draft.losses, of_losses, strict=True) if want not in missed]
        others = frozenset(each.partition_id for each in lost)
        gaps = self.gaps(got, losses)
        for gap in gaps:
            log_event("landing.gap", log=self.name.uri, gap=gap.uri)
        state.store.delete([each.link.uri for each in lost if each.link.uri])  # no one can get a link for them
        # guard: a draft stays until a job has begun with its manifest
        over = [self._draft(manifest_id)] if outcome.is_over else []
        state.store.delete([self._mark(manifest_id), *over])
        return Settled(outcome.manifest, got, others, losses, outcome.has_begun, gaps)

    def gaps(self, links: Iterable[PartitionLink], losses: Iterable[PartitionLoss]) -> list[LogGap]:
        """Where records may be lost, as links and losses tell."""
        return [*(self._gap_of(each) for each in links if each.link.gap), *map(self._loss_of, losses)]

    def left(self) -> tuple[list[LandingDraft], list[RecordUnreadable]]:
        """The drafts that are to be settled, and why some cannot be read; see `drafts_left`."""
        return drafts_left(self.chains.state, self.chains.drafts_folder(self.name, self.log_id))

    def sweep(self, *, is_gone: bool = False) -> int:
        """Delete objects of planners that died before they wrote a draft; returns how many.

        One may go as soon as the link for its records is of another object. Then it can never get a link, however long
        its planner was held up.

        Args:
            is_gone: Whether another log has the name by now. No plan goes on with these chains, so they are ended.
        """
        store, now, swept = self.chains.state.store, self.chains.state.clock.now(), 0
        for mark in list(store.list(self.chains.landing_folder(self.name, self.log_id))):
            if (now - mark.modified_at).total_seconds() < SWEEP_SECONDS:
                continue
            manifest_id = base_name(mark.uri)
            if is_gone:
                if store.stat(self._draft(manifest_id)) is not None:
                    continue  # it names the objects, and is settled once it can be read
                self._end(manifest_id)
            objects = [info.uri for info in store.list(self.chains.state.layout.landed_inputs(manifest_id))]
            useless = [uri for uri in objects if self._has_lost(uri)]
            linked = [uri for uri in objects if uri not in useless and self._is_linked(uri)]
            store.delete(useless)
            swept += len(useless)
            if len(useless) + len(linked) == len(objects):
                store.delete([mark.uri])
        return swept

    def _has_lost(self, uri: str) -> bool:
        """Whether the records of an object are in another one, or the chain ended before them."""
        partition_id, after = _range_of(uri)
        chain = self.chains.chain(PartitionPlace(self.name, self.log_id, partition_id))
        link = chain.at(after)
        if link is None:  # the chain may end here, or go past by a longer link
            link = chain.link_with(after)
        if link is None:
            last = chain.last()
            return last is not None and last.closes  # guard: an object that may still get a link stays
        return link.uri != uri

    def _end(self, manifest_id: str) -> None:
        """End the chains of the partitions that a manifest has objects of."""
        objects = self.chains.state.store.list(self.chains.state.layout.landed_inputs(manifest_id))
        for partition_id in sorted({_range_of(info.uri)[0] for info in objects}):
            chain = self.chains.chain(PartitionPlace(self.name, self.log_id, partition_id))
            while (last := chain.last()) is None or not last.closes:
                end = "0" if last is None else last.last
                now = self.chains.state.clock.now()
                chain.create(LandedLink(after=end, last=end, manifest_id="", arrived_at=now, closes=True))

    def _lost(self, gap: LogGap) -> ManifestFile:
        """What a manifest names where records may be lost: its reading finds none, and says so."""
        return ManifestFile(uri=str(gap), size_bytes=0, etag=self.log_id)

    def _gap_of(self, each: PartitionLink) -> LogGap:
        """Where records before a link may be lost."""
        return LogGap(self.name, each.partition_id, each.link.first, int(each.link.begins or 0))

    def _loss_of(self, each: PartitionLoss) -> LogGap:
        return LogGap(self.name, each.partition_id, int(each.loss.after))

    def _is_linked(self, uri: str) -> bool:
        partition_id, after = _range_of(uri)
        link = self.chains.chain(PartitionPlace(self.name, self.log_id, partition_id)).at(after)
        return link is not None and link.uri == uri

    def _wanted(self, each: PartitionLink, named: Mapping[str, ManifestFile]) -> Wanted[LandedLink]:
        chain, link = self.chains.chain(PartitionPlace(self.name, self.log_id, each.partition_id)), each.link
        gap = [str(self._gap_of(each))] if link.gap else []
        return Wanted(chain, link, [named[uri] for uri in (*gap, link.uri) if uri in named])

    def _wanted_loss(self, each: PartitionLoss, named: Mapping[str, ManifestFile]) -> Wanted[LandedLoss]:
        place = PartitionPlace(self.name, self.log_id, each.partition_id)
        return Wanted(self.chains.losses(place), each.loss, [named[str(self._loss_of(each))]])

    def _object(self, manifest_id: str, partition_id: str, link: LandedLink) -> str:
        place = f"{self.name.scheme}/{self.name.path}/{partition_id}"
        return f"{self.chains.state.layout.landed_inputs(manifest_id)}{place}/{link.after}-{link.last}.ndjson.zst"

    def _draft(self, manifest_id: str) -> str:
        return f"{self.chains.drafts_folder(self.name, self.log_id)}{manifest_id}.json"

    def _mark(self, manifest_id: str) -> str:
        return f"{self.chains.landing_folder(self.name, self.log_id)}{manifest_id}"


def link_of(piece: Piece, manifest_id: str) -> LandedLink:
    """The link of a piece, without its object."""
    return LandedLink(
        after=str(piece.after),
        last=str(piece.last),
        begins=str(piece.begins or ""),
        manifest_id=manifest_id,
        lines=piece.lines.lines,
        records=piece.lines.records,
        tombstones=piece.lines.tombstones,
        packed=piece.lines.packed,
        strays=piece.lines.strays,
        arrived_at=piece.latest,
        gap=piece.gap,
        closes=piece.closes,
    )


def _range_of(uri: str) -> tuple[str, int]:
    """The partition of an object, and the position behind which its records are, by its name."""
    folder, _, name = uri.rpartition("/")
    return base_name(folder), int(name.partition("-")[0])

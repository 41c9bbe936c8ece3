"""Writes the records of shards as objects, and gives each object to one manifest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.core.documents.chains.kinesis_records import (
    KinesisDraft,
    KinesisLink,
    KinesisLoss,
    ShardLink,
    ShardLoss,
)
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import RecordUnreadable, StoreUnavailable
from compactor.core.inputs.dates import ARRIVAL
from compactor.core.kinesis.places import KinesisStream, StreamGap
from compactor.core.layout import base_name
from compactor.ledger.kinesis.shard_chains import ShardChains, ShardPlace
from compactor.manifests.kinesis.shard_reading import Piece
from compactor.manifests.kinesis.stream_plan import Gap, gap_of, tell
from compactor.manifests.linked import Wanted, drafts_left, settle

SWEEP_SECONDS = 24 * 3600.0
"""Age at which objects are looked for that no link names: a planner may still be at work on younger ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a draft.

    Attributes:
        manifest: What was written; None if others have all of its records, or if it has none.
        links: The links that it got.
        lost: The shards of those that others got.
        losses: The losses that it got.
        has_begun: Whether a job has begun with the manifest.
    """

    manifest: Manifest | None
    links: Sequence[ShardLink]
    lost: frozenset[str]
    losses: Sequence[ShardLoss] = ()
    has_begun: bool = False

    @property
    def gaps(self) -> list[Gap]:
        """Where records may be lost."""
        of_links = [gap_of(each.shard_id, each.link) for each in self.links if each.link.gap]
        return [*of_links, *(Gap(each.shard_id, each.loss.after, "") for each in self.losses)]


@dataclass(frozen=True, slots=True)
class Landing:
    """Lands the records of one stream id.

    An object is written before its link, under a name that has the id of its manifest. So no other planner writes it,
    and no other manifest may name it.
    """

    chains: ShardChains
    stream: KinesisStream
    stream_id: str

    def begin(self, manifest_id: str) -> None:
        """Mark that objects are being landed for a manifest, so that those without a link are found later."""
        self.chains.state.store.create(self._mark(manifest_id), b"")

    def land(self, manifest_id: str, shard_id: str, piece: Piece) -> ShardLink:
        """Write the object of a piece, unless it has no line; return the link for it.

        Raises:
            StoreUnavailable: The object cannot be seen although it was written.
        """
        link = link_of(piece, manifest_id)
        if not piece.lines.lines:
            return ShardLink(shard_id=shard_id, link=link)
        store, uri = self.chains.state.store, self._object(manifest_id, shard_id, link)
        store.create(uri, piece.lines.to_bytes())
        info = store.stat(uri)
        if info is None:
            raise StoreUnavailable(f"{uri}: it is gone right after it was written")
        return ShardLink(shard_id=shard_id, link=link.model_copy(update={"uri": uri, "etag": info.etag}))

    def drafted(
        self, manifest_id: str, links: Sequence[ShardLink], sizes: Sequence[int], losses: Sequence[ShardLoss] = ()
    ) -> KinesisDraft:
        """The manifest of landed objects, and of what may be lost.

        Args:
            manifest_id: For which they were landed.
            links: In the order of each shard.
            sizes: The length of the lines of each.
            losses: What no link tells of.
        """
        now, files = self.chains.state.clock.now(), list[ManifestFile]()
        for each, size in zip(links, sizes, strict=True):
            link = each.link
            if link.gap:  # guard: a manifest names what may be lost
                files.append(self._lost(each.shard_id, link.first, int(link.begins or 0)))
            if link.lines:
                files.append(ManifestFile(uri=link.uri, size_bytes=size, etag=link.etag))
        files += [self._lost(each.shard_id, int(each.loss.after)) for each in losses]
        dated = tuple(each.model_copy(update={"event_time": now, "dated_by": ARRIVAL}) for each in files)
        manifest = Manifest(
            manifest_id=manifest_id,
            date=f"{now:%Y-%m-%d}",
            created_at=now,
            files=dated,
            listed_at=now,
        )
        return KinesisDraft(manifest=manifest, links=tuple(links), losses=tuple(losses))

    def settle(self, draft: KinesisDraft, *, is_new: bool = False) -> Settled:
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
        others = frozenset(each.shard_id for each in lost)
        settled = Settled(outcome.manifest, got, others, losses, outcome.has_begun)
        for gap in settled.gaps:
            tell(self.stream, gap)
        state.store.delete([each.link.uri for each in lost if each.link.uri])  # no one can get a link for them
        state.store.delete([self._mark(manifest_id), *([self._draft(manifest_id)] if outcome.is_over else [])])
        return settled

    def left(self) -> tuple[list[KinesisDraft], list[RecordUnreadable]]:
        """The drafts that are to be settled, and why some cannot be read; see `drafts_left`."""
        return drafts_left(self.chains.state, self.chains.drafts_folder(self.stream, self.stream_id), KinesisDraft)

    def sweep(self, *, is_gone: bool = False) -> int:
        """Delete objects of planners that died before they wrote a draft; returns how many.

        One may go as soon as the link for its records is of another object. Then it can never get a link, however long
        its planner was held up.

        Args:
            is_gone: Whether another stream has the name by now. No plan goes on with these chains, so they are ended.
        """
        store, now, swept = self.chains.state.store, self.chains.state.clock.now(), 0
        for mark in list(store.list(self.chains.landing_folder(self.stream, self.stream_id))):
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
        shard_id, after = _range_of(uri)
        chain = self.chains.chain(ShardPlace(self.stream, self.stream_id, shard_id))
        link = chain.at(after)
        if link is None:  # the chain may end here, or go past by a longer link
            link = chain.link_with(after)
        if link is None:
            last = chain.last()
            return last is not None and last.closes  # guard: an object that may still get a link stays
        return link.uri != uri

    def _end(self, manifest_id: str) -> None:
        """End the chains of the shards that a manifest has objects of."""
        objects = self.chains.state.store.list(self.chains.state.layout.landed_inputs(manifest_id))
        for shard_id in sorted({_range_of(info.uri)[0] for info in objects}):
            chain = self.chains.chain(ShardPlace(self.stream, self.stream_id, shard_id))
            while (last := chain.last()) is None or not last.closes:
                end = "0" if last is None else last.last
                now = self.chains.state.clock.now()
                chain.create(KinesisLink(after=end, last=end, manifest_id="", arrived_at=now, closes=True))

    def _lost(self, shard_id: str, after: int, before: int = 0) -> ManifestFile:
        """What a manifest names where records may be lost: its reading finds none, and says so."""
        gap = StreamGap(self.stream, shard_id, after, before)
        return ManifestFile(uri=str(gap), size_bytes=0, etag=self.stream_id)

    def _is_linked(self, uri: str) -> bool:
        shard_id, after = _range_of(uri)
        link = self.chains.chain(ShardPlace(self.stream, self.stream_id, shard_id)).at(after)
        return link is not None and link.uri == uri

    def _wanted(self, each: ShardLink, named: Mapping[str, ManifestFile]) -> Wanted[KinesisLink]:
        chain, link = self.chains.chain(ShardPlace(self.stream, self.stream_id, each.shard_id)), each.link
        gap = [str(StreamGap(self.stream, each.shard_id, link.first, int(link.begins or 0)))] if link.gap else []
        return Wanted(chain, link, [named[uri] for uri in (*gap, link.uri) if uri in named])

    def _wanted_loss(self, each: ShardLoss, named: Mapping[str, ManifestFile]) -> Wanted[KinesisLoss]:
        place = ShardPlace(self.stream, self.stream_id, each.shard_id)
        gap = str(StreamGap(self.stream, each.shard_id, int(each.loss.after)))
        return Wanted(self.chains.losses(place), each.loss, [named[gap]])

    def _object(self, manifest_id: str, shard_id: str, link: KinesisLink) -> str:
        place = f"{self.stream.source}/{self.stream.name}/{shard_id}"
        return f"{self.chains.state.layout.landed_inputs(manifest_id)}{place}/{link.after}-{link.last}.ndjson"

    def _draft(self, manifest_id: str) -> str:
        return f"{self.chains.drafts_folder(self.stream, self.stream_id)}{manifest_id}.json"

    def _mark(self, manifest_id: str) -> str:
        return f"{self.chains.landing_folder(self.stream, self.stream_id)}{manifest_id}"


def link_of(piece: Piece, manifest_id: str) -> KinesisLink:
    """The link of a piece, without its object."""
    return KinesisLink(
        after=str(piece.after),
        last=str(piece.last),
        begins=str(piece.begins or ""),
        manifest_id=manifest_id,
        lines=piece.lines.lines,
        records=piece.lines.records,
        packed=piece.lines.packed,
        strays=piece.lines.strays,
        arrived_at=piece.latest,
        gap=piece.gap,
        closes=piece.closes,
    )


def _range_of(uri: str) -> tuple[str, int]:
    """The shard of an object, and the sequence number behind which its records are, by its name."""
    folder, _, name = uri.rpartition("/")
    return base_name(folder), int(name.partition("-")[0])

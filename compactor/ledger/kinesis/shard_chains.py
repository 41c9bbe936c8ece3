"""The chains of what was landed and lost: of each shard of each stream id, and how far a shard was seen to be empty."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.chains.kinesis_records import (
    KinesisFirstPlan,
    KinesisLink,
    KinesisLoss,
    KinesisOrigin,
    KinesisSeen,
)
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.kinesis.places import SCHEME, KinesisStream
from compactor.ledger.chains.chain import Chain, children
from compactor.ledger.state import State

_DIGITS = 129  # of the largest sequence number, by the documents of Kinesis
_LOSS_DIGITS = 9

_SHARDS, _DRAFTS, _LANDING = "shards", "drafts", "landing"


@dataclass(frozen=True, slots=True, order=True)
class ShardPlace:
    """One chain: a shard of one stream id."""

    stream: KinesisStream
    stream_id: str
    shard_id: str

    def __str__(self) -> str:
        return f"{self.stream}/{self.shard_id} of stream id {self.stream_id}"


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends.

    Attributes:
        after: The sequence number behind which the next link begins; 0 at the beginning of the shard.
        anchor: A record that reading has to find first, as long as retention keeps it; 0 without one.
        whole_since: All records behind `after` came at this time or later; None if only the anchor tells.
        latest: The latest time that is known of the shard: of its last record, or when it was seen to have no other.
        gap: Whether records behind `after` may have been lost before `whole_since`, and no manifest names them.
        losses: How many losses are on record of which no next record was known.
        closed: Whether the shard ended here.
    """

    after: int
    anchor: int
    whole_since: datetime | None
    latest: datetime
    gap: bool = False
    losses: int = 0
    closed: bool = False

    @property
    def landed_to(self) -> datetime | None:
        """Records that came before this time are landed, or named as lost; None if that is not known."""
        if self.gap:
            return None
        return self.latest if self.after else self.whole_since


@dataclass(frozen=True, slots=True)
class ShardChains:
    """Reads and writes the chains."""

    state: State

    def drafts_folder(self, stream: KinesisStream, stream_id: str) -> str:
        """The folder of the drafts of manifests of a stream."""
        return f"{self._id_folder(stream, stream_id)}{_DRAFTS}/"

    def drafts_folders(self) -> Iterator[tuple[str, str]]:
        """The folders of all drafts, each with its stream."""
        for stream in self._streams():
            yield from ((str(stream), self.drafts_folder(stream, each)) for each in self.stream_ids(stream))

    def landing_folder(self, stream: KinesisStream, stream_id: str) -> str:
        """The folder of the marks of manifests whose objects are being landed, or were when a planner died."""
        return f"{self._id_folder(stream, stream_id)}{_LANDING}/"

    def chain(self, place: ShardPlace) -> Chain[KinesisLink]:
        """The links of a shard."""
        return Chain(self.state.store, self._folder(place), _DIGITS, _read_link)

    def losses(self, place: ShardPlace) -> Chain[KinesisLoss]:
        """What of a shard was lost while no next record was known."""
        return Chain(self.state.store, f"{self._folder(place)}lost/", _LOSS_DIGITS, _read_loss)

    def first_plan(self, stream: KinesisStream, stream_id: str) -> KinesisFirstPlan | None:
        """When a stream was first planned; None if it was not."""
        uri = self._first_plan(stream, stream_id)
        return KinesisFirstPlan.find(self.state.store, uri, "when a stream was first planned")

    def begin_stream(self, stream: KinesisStream, stream_id: str, first: KinesisFirstPlan) -> None:
        """Note when a stream was first planned, unless another planner did so before."""
        self.state.store.create(self._first_plan(stream, stream_id), first.to_json())

    def begin(self, place: ShardPlace, origin: KinesisOrigin) -> None:
        """Begin a chain, unless another planner began it before."""
        self.state.store.create(self._origin(place), origin.to_json())

    def head(self, place: ShardPlace) -> Head | None:
        """Where a chain ends; None if it was not begun."""
        last = self.chain(place).last()
        if last is None:
            return self._begun(place)
        if last.closes:
            return Head(last.end, last.end, None, last.arrived_at, closed=True)
        loss = self.losses(place).last()
        seen = self._seen(place, last.last)
        moments = [*([seen.at] if seen else []), *([loss.seen_at] if loss and loss.after == last.last else [])]
        return Head(
            after=last.end,
            anchor=last.end,
            whole_since=max(moments, default=None),
            latest=max([*moments, last.arrived_at]),
            losses=loss.end if loss else 0,
        )

    def origin(self, place: ShardPlace) -> KinesisOrigin:
        """Where a chain begins.

        Raises:
            ObjectNotFound: It was not begun.
        """
        uri = self._origin(place)
        return KinesisOrigin.read(self.state.store.read(uri), uri, "the beginning of a chain")

    def note_seen(self, place: ShardPlace, seen: KinesisSeen) -> None:
        """Note that a shard has no record behind a sequence number. An earlier note, written later, tells less."""
        self.state.store.put(self._seen_uri(place), seen.to_json())

    def places(self, stream: KinesisStream | None = None) -> Iterator[ShardPlace]:
        """All chains that were begun, of one stream or of all."""
        for each in self._streams() if stream is None else [stream]:
            for stream_id in self.stream_ids(each):
                yield from self.places_of(each, stream_id)

    def places_of(self, stream: KinesisStream, stream_id: str) -> Iterator[ShardPlace]:
        """The chains that were begun of one stream id."""
        shards = children(self.state.store, f"{self._id_folder(stream, stream_id)}{_SHARDS}/")
        return (ShardPlace(stream, stream_id, shard_id) for shard_id in shards)

    def stream_ids(self, stream: KinesisStream) -> list[str]:
        """The ids of all streams of a name of which something was landed."""
        return list(children(self.state.store, self._stream_folder(stream)))

    def _begun(self, place: ShardPlace) -> Head | None:
        try:
            origin = self.origin(place)
        except ObjectNotFound:
            return None
        seen, loss = self._seen(place, "0"), self.losses(place).last()
        moments = [*([seen.at] if seen else []), *([loss.seen_at] if loss else [])]
        since = max([*moments, origin.whole_since])
        # A shard that had records when its chain was begun must still have the first of them, until their loss is told.
        return Head(
            after=0,
            anchor=int(origin.first or 0),
            whole_since=None if origin.first and not moments else since,
            latest=since,
            gap=origin.gap and loss is None,
            losses=loss.end if loss else 0,
        )

    def _seen(self, place: ShardPlace, after: str) -> KinesisSeen | None:
        """The note of a shard, if it is about this sequence number. One that cannot be read tells nothing."""
        uri = self._seen_uri(place)
        try:
            data = self.state.store.read(uri)
        except ObjectNotFound:
            return None
        try:
            found = KinesisSeen.read(data, uri)
        except RecordUnreadable:  # without it a gap may be told of that there is not; the next note takes its place
            return None
        return found if found.after == after else None

    def _streams(self) -> Iterator[KinesisStream]:
        root, store = self.state.layout.kinesis_folder, self.state.store
        for source in children(store, root):
            yield from (KinesisStream(source, name) for name in children(store, f"{root}{source}/"))

    def _stream_folder(self, stream: KinesisStream) -> str:
        return f"{self.state.layout.kinesis_folder}{str(stream).removeprefix(SCHEME)}/"

    def _id_folder(self, stream: KinesisStream, stream_id: str) -> str:
        return f"{self._stream_folder(stream)}{stream_id}/"

    def _folder(self, place: ShardPlace) -> str:
        return f"{self._id_folder(place.stream, place.stream_id)}{_SHARDS}/{place.shard_id}/"

    def _first_plan(self, stream: KinesisStream, stream_id: str) -> str:
        return f"{self._id_folder(stream, stream_id)}first-plan.json"

    def _origin(self, place: ShardPlace) -> str:
        return f"{self._folder(place)}origin.json"

    def _seen_uri(self, place: ShardPlace) -> str:
        return f"{self._folder(place)}seen.json"


def _read_loss(data: bytes, uri: str) -> KinesisLoss:
    return KinesisLoss.read(data, uri, "a loss of a shard")


def _read_link(data: bytes, uri: str) -> KinesisLink:
    return KinesisLink.read(data, uri, "a link of a chain")

"""The shards of a stream that may be read now, each from where its chain ends."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.documents.chains.kinesis_records import KinesisLink, KinesisOrigin, KinesisSeen
from compactor.core.errors import StoreUnavailable
from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import KinesisLog, Shard
from compactor.core.map_ordered import map_ordered
from compactor.ledger.kinesis.shard_chains import Head, ShardChains, ShardPlace
from compactor.manifests.kinesis.landing import Settled
from compactor.manifests.kinesis.lineage import lineage
from compactor.manifests.kinesis.lines import Strays
from compactor.manifests.kinesis.shard_reading import KEPT, Piece, ShardReader
from compactor.manifests.kinesis.stream_plan import Gap, StreamPlan, gap_of, tell

NOTED_EVERY = timedelta(hours=1)
"""How often it is noted that an idle shard has no further record."""


@dataclass(slots=True, kw_only=True)
class Shards:
    """The readers of one plan.

    Attributes:
        began_at: When the plan began: it ends with the records of that time.
        writes: Whether chains may be begun and closed; not in a dry run.
        readers: By the id of their shard.
        troubles: Why shards could not be read further.
    """

    chains: ShardChains
    log: KinesisLog
    stream: KinesisStream
    stream_id: str
    stray_rule: Strays
    now: Callable[[], datetime]
    began_at: datetime
    plan: StreamPlan
    writes: bool
    readers: dict[str, ShardReader] = field(default_factory=dict)
    troubles: list[StoreUnavailable] = field(default_factory=list)
    _was_planned: bool = field(init=False)
    _lost: set[str] = field(default_factory=set)
    _ended: dict[str, Head] = field(default_factory=dict)  # where no chain says so, as in a dry run

    def __post_init__(self) -> None:
        self._was_planned = next(self.chains.places_of(self.stream, self.stream_id), None) is not None

    def place(self, shard_id: str) -> ShardPlace:
        """The chain of a shard."""
        return ShardPlace(self.stream, self.stream_id, shard_id)

    def refresh(self) -> None:
        """Find the shards that may be read now: at the beginning, and after one was closed."""
        shards = self.log.shards(self.stream)
        listed = {shard.shard_id for shard in shards}
        known = dict.fromkeys(each for shard in shards for each in (shard.shard_id, *shard.parents))
        heads = dict(zip(known, map_ordered(self._head, known), strict=True))
        for shard_id in known:
            head = heads[shard_id]
            if shard_id not in listed and head is not None and not head.closed:
                heads[shard_id] = self._closed_unlisted(shard_id, head)
        found = lineage(shards, heads)
        self.plan.waiting = len(found.waiting)
        new = [shard for shard in found.ready if shard.shard_id not in self.readers]

        def begun(shard: Shard) -> Head:
            return heads[shard.shard_id] or self._begun(shard, [heads[each] for each in shard.parents])

        for shard, head in zip(new, map_ordered(begun, new), strict=True):
            if not head.closed:  # as another planner may have done since the shards were listed
                self.readers[shard.shard_id] = self._reader(shard, head)

    def close(self) -> None:
        """End all reading."""
        for reader in self.readers.values():
            reader.close()

    def unread(self) -> list[ShardReader]:
        """The readers that may have more, those first that were read least."""
        found = [reader for reader in self.readers.values() if not reader.is_done]
        return sorted(found, key=lambda reader: reader.pieces)

    def piece(self, reader: ShardReader, max_bytes: int) -> Piece | None:
        """The next records of a shard. Trouble with one shard does not keep the others from being landed."""
        try:
            return reader.piece(max_bytes)
        except StoreUnavailable as exc:
            reader.is_done = True
            self._lost.add(reader.shard.shard_id)
            self.troubles.append(exc)
            return None

    def settled(self, settled: Settled) -> None:
        """Take in what came of a draft. What others landed waits for the next plan; children of ended shards begin."""
        self._lost.update(settled.lost)
        for shard_id in settled.lost:
            self.readers[shard_id].is_done = True
        ended = [each for each in settled.links if each.link.closes]
        if not self.writes:
            for each in ended:
                self._ended[each.shard_id] = _head_behind(each.link)
        if ended:
            self.refresh()

    def note_idle(self) -> None:
        """Note which shards have no further record, and tell of those where one may be lost."""
        for shard_id, reader in self.readers.items():
            since, head = reader.empty_since, reader.head
            if since is None or shard_id in self._lost:
                continue
            is_news = reader.gap and not (head.told and reader.after == head.after)
            if is_news:
                self._tell(Gap(shard_id, str(reader.after), ""))
            is_old = head.whole_since is None or since - head.whole_since >= NOTED_EVERY
            if self.writes and (is_news or (is_old and reader.after == head.after)):
                seen = KinesisSeen(after=str(reader.after), at=since, gap=reader.gap)
                self.chains.note_seen(self.place(shard_id), seen)

    def _tell(self, gap: Gap) -> None:
        self.plan.gaps.append(gap)
        if self.writes:
            tell(self.stream, gap)

    def _head(self, shard_id: str) -> Head | None:
        return self._ended.get(shard_id) or self.chains.head(self.place(shard_id))

    def _reader(self, shard: Shard, head: Head) -> ShardReader:
        return ShardReader(
            log=self.log,
            stream=self.stream,
            shard=shard,
            head=head,
            until=self.began_at,
            stray_rule=self.stray_rule,
            now=self.now,
        )

    def _begun(self, shard: Shard, parents: Sequence[Head | None]) -> Head:
        """Begin the chain of a shard. One whose parents were landed begins where these ended."""
        known, now = [each for each in parents if each is not None], self.now()
        first = 0 if known else self._first(shard)
        origin = KinesisOrigin(
            first=str(first or ""),
            whole_since=max((each.latest for each in known), default=now),
            planned_at=now,
            gap=bool(shard.parents) and not known and self._was_planned,
        )
        if not self.writes:
            since = None if first else origin.whole_since
            return Head(after=0, anchor=first, whole_since=since, latest=origin.whole_since, gap=origin.gap)
        self.chains.begin(self.place(shard.shard_id), origin)
        head = self.chains.head(self.place(shard.shard_id))
        if head is None:
            raise AssertionError("a chain that was begun has a head")
        return head

    def _first(self, shard: Shard) -> int:
        """The sequence number of the earliest record that a shard has now; 0 without any."""
        with closing(self.log.read(self.stream, shard.shard_id, 0)) as batches:
            for batch in batches:
                if batch.records:
                    return batch.records[0].sequence
                if batch.is_end or not batch.behind_seconds:
                    break
        return 0

    def _closed_unlisted(self, shard_id: str, head: Head) -> Head:
        """The head of a chain whose shard the stream lists no more: all its records are older than the retention."""
        if self.now() - head.latest < KEPT:  # it is listed again, or its records are still there
            return head
        link = KinesisLink(
            after=str(head.after), last=str(head.after), manifest_id="", arrived_at=head.latest, gap=True, closes=True
        )
        self._tell(gap_of(shard_id, link))
        self.plan.closed += 1
        if self.writes:
            self.chains.chain(self.place(shard_id)).create(link)
        self._ended[shard_id] = _head_behind(link)
        return self._ended[shard_id]


def _head_behind(link: KinesisLink) -> Head:
    """Where the chain of a shard that ended with a link ends."""
    return Head(link.end, link.end, None, link.arrived_at, closed=True)

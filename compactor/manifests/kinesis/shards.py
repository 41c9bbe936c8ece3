"""The shards of a stream that may be read now, each from where its chain ends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.documents.chains.kinesis_records import (
    KinesisFirstPlan,
    KinesisLink,
    KinesisLoss,
    KinesisOrigin,
    KinesisSeen,
    ShardLink,
    ShardLoss,
)
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable, StuckError
from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import KinesisLog, LiveStream, Shard
from compactor.core.map_ordered import map_ordered
from compactor.ledger.chains.chain import heads
from compactor.ledger.kinesis.shard_chains import Head, ShardChains, ShardPlace
from compactor.manifests.kinesis.landing import Settled
from compactor.manifests.kinesis.lineage import lineage
from compactor.manifests.kinesis.lines import Strays
from compactor.manifests.kinesis.shard_reading import KEPT, MARGIN, Piece, ShardReader

NOTED_EVERY = timedelta(hours=1)
"""How often it is noted that an idle shard has no further record."""


@dataclass(slots=True, kw_only=True)
class Shards:
    """The readers of one plan.

    Attributes:
        live: The stream that is planned.
        began_at: When the plan began.
        until: Records that arrived later may wait for the next plan.
        writes: Whether chains may be begun; not in a dry run.
        readers: By the id of their shard.
        waiting: How many shards have parents that are not landed whole.
        gone: Shards that the stream lists no more, by id: links that end their chains with a gap.
        are_overtaken: Whether another planner landed records of a shard meanwhile. The next plan goes on behind them.
        troubles: Why shards could not be read further.
    """

    chains: ShardChains
    log: KinesisLog
    stream: KinesisStream
    live: LiveStream
    stray_rule: Strays
    now: Callable[[], datetime]
    began_at: datetime
    until: datetime
    writes: bool
    readers: dict[str, ShardReader] = field(default_factory=dict)
    waiting: int = 0
    gone: dict[str, ShardLink] = field(default_factory=dict)
    are_overtaken: bool = False
    troubles: list[CompactorError] = field(default_factory=list)
    _lost: set[str] = field(default_factory=set)
    _damaged: set[str] = field(default_factory=set)  # shards whose chain has a record that cannot be read
    _ended: dict[str, Head] = field(default_factory=dict)  # where no chain says so, as in a dry run
    _unbegun: dict[str, datetime] = field(default_factory=dict)  # shards with trouble, and since when records may wait

    def place(self, shard_id: str) -> ShardPlace:
        """The chain of a shard."""
        return ShardPlace(self.stream, self.live.stream_id, shard_id)

    def check(self) -> None:
        """Make sure that what was read is of the stream that is planned: it is asked by name, which another may have.

        Raises:
            StoreUnavailable: It is not, or records may have gone that were thought to be kept.
        """
        found, expected = self.log.stream(self.stream), self.live
        if found is None or found.stream_id != expected.stream_id:
            raise StoreUnavailable(
                f"{self.stream}: deleted or made again while it was planned; expected the id {expected.stream_id}"
            )
        if found.retention < expected.retention:
            raise StoreUnavailable(f"{self.stream}: its retention was lowered while it was planned; plan it again")

    def refresh(self) -> None:
        """Find the shards that may be read now: at the beginning, and after one was closed."""
        shards = self.log.shards(self.stream)
        self.check()
        listed = {shard.shard_id for shard in shards}
        first = self._first_plan(listed)
        known = dict.fromkeys(each for shard in shards for each in (shard.shard_id, *shard.parents))
        ends = self._heads(known, first)
        for shard_id in known:
            head = ends[shard_id]
            # guard: a shard that is listed no more ends with a gap
            if shard_id not in listed and head is not None and not head.closed:
                self._end(shard_id, head)
        found = lineage(shards, ends)
        self.waiting = len(found.waiting)
        new = [each for each in found.ready if each.shard_id not in self.readers and each.shard_id not in self._damaged]

        def begun(shard: Shard) -> Head | None:
            return ends[shard.shard_id] or self._begun(shard, ends, first)

        for shard, head in zip(new, map_ordered(begun, new), strict=True):
            if head is not None and not head.closed:  # as another planner may have done since the shards were listed
                self.readers[shard.shard_id] = self._reader(shard, head)

    def close(self) -> None:
        """End all reading."""
        for reader in self.readers.values():
            reader.close()

    def unread(self) -> list[ShardReader]:
        """The readers that may have more. First those that were read least, and of these those that wait longest."""
        found = [reader for reader in self.readers.values() if not reader.is_done]
        return sorted(found, key=lambda reader: (reader.pieces, reader.head.latest))

    def piece(self, reader: ShardReader, max_bytes: int) -> Piece | None:
        """The next records of a shard. Trouble with one shard does not keep the others from being landed."""
        found = reader.piece(max_bytes)
        if reader.trouble is not None:
            self._lost.add(reader.shard.shard_id)
            self.troubles.append(reader.trouble)
        return found

    def settled(self, settled: Settled) -> None:
        """Take in what came of a draft. What others landed waits for the next plan; children of ended shards begin."""
        self._lost.update(settled.lost)
        self.are_overtaken |= bool(settled.lost)
        for shard_id in settled.lost & self.readers.keys():
            self.readers[shard_id].is_done = True
        ended = [each for each in settled.links if each.link.closes]
        if not self.writes:
            for each in ended:
                self._ended[each.shard_id] = Head(each.link.end, each.link.end, None, each.link.arrived_at, closed=True)
        if ended:
            self.refresh()

    def losses(self, manifest_id: str) -> list[ShardLoss]:
        """What of shards without a further record may be lost, for a manifest that is to name it."""
        found = list[ShardLoss]()
        for shard_id, reader in self._idle().items():
            if reader.gap and reader.empty_since is not None:
                loss = KinesisLoss(
                    number=reader.head.losses,
                    after=str(reader.after),
                    seen_at=reader.empty_since,
                    manifest_id=manifest_id,
                )
                found.append(ShardLoss(shard_id=shard_id, loss=loss))
        return found

    def note_idle(self) -> None:
        """Note which shards have no further record, unless one may be lost that no manifest names."""
        for shard_id, reader in self._idle().items():
            since, head = reader.empty_since, reader.head
            if since is None or reader.gap or reader.after != head.after:
                continue
            if head.whole_since is None or since - head.whole_since >= NOTED_EVERY:
                self.chains.note_seen(self.place(shard_id), KinesisSeen(after=str(reader.after), at=since))

    def age_seconds(self) -> float | None:
        """For how long a record of any shard may have waited that is not landed; None without a shard."""
        now = self.now()
        unbegun = [max((now - since).total_seconds(), 0.0) for since in self._unbegun.values()]
        return max([*unbegun, *(reader.age_seconds(now) for reader in self.readers.values())], default=None)

    @property
    def are_read(self) -> bool:
        """Whether some shard was read, and without trouble."""
        return any(each.behind_seconds is not None and each.trouble is None for each in self.readers.values())

    def _idle(self) -> dict[str, ShardReader]:
        """The readers of shards that were seen to have no further record."""
        return {
            shard_id: reader
            for shard_id, reader in self.readers.items()
            if reader.empty_since is not None and shard_id not in self._lost
        }

    def _heads(self, shard_ids: Iterable[str], first: KinesisFirstPlan) -> dict[str, Head | None]:
        """Where the chains end. One with a damaged record counts as open: it waits, its children do, and no other."""
        known = dict[str, Head | None]()
        for shard_id, found in heads(self._head, shard_ids):
            if isinstance(found, StuckError) and shard_id not in self._damaged:
                self._damaged.add(shard_id)
                self._unbegun[shard_id] = first.planned_at
                self.troubles.append(found)
            known[shard_id] = Head(0, 0, None, first.planned_at) if isinstance(found, StuckError) else found
        return known

    def _head(self, shard_id: str) -> Head | None:
        return self._ended.get(shard_id) or self.chains.head(self.place(shard_id))

    def _reader(self, shard: Shard, head: Head) -> ShardReader:
        return ShardReader(
            log=self.log,
            stream=self.stream,
            shard=shard,
            head=head,
            until=self.until,
            stray_rule=self.stray_rule,
            now=self.now,
            kept=max(KEPT, self.live.retention - MARGIN),
            is_done=self._is_landed(head),
        )

    def _is_landed(self, head: Head) -> bool:
        """Whether an earlier plan with the same bound landed what a shard had by then."""
        return self.until < self.began_at and head.landed_to is not None and head.landed_to > self.until

    def _first_plan(self, listed: set[str]) -> KinesisFirstPlan:
        """When the stream was first planned, and what it had then."""
        known = self.chains.first_plan(self.stream, self.live.stream_id)
        if known is not None:
            return known
        first = KinesisFirstPlan(planned_at=self.began_at, shards=tuple(sorted(listed)))
        if not self.writes:
            return first
        self.chains.begin_stream(self.stream, self.live.stream_id, first)
        return self.chains.first_plan(self.stream, self.live.stream_id) or first

    def _begun(self, shard: Shard, heads: Mapping[str, Head | None], first: KinesisFirstPlan) -> Head | None:
        """Begin the chain of a shard; None if it cannot be read now. One whose parents were landed begins there."""
        was_there, now = shard.shard_id in first.shards, self.now()
        landed = [found for each in shard.parents if (found := heads.get(each)) is not None]
        known = [each for each in landed if each.after or not was_there]  # an empty one tells nothing of that time
        # A parent that the stream had since the first plan, and that is gone without a chain, was never landed.
        is_orphan = any(heads.get(each) is None and (each in first.shards or not was_there) for each in shard.parents)
        since = max((each.latest for each in known), default=first.planned_at)
        try:
            earliest = 0 if known else self._earliest(shard)
        except (StoreUnavailable, AccessError) as exc:
            self._unbegun[shard.shard_id] = since
            self.troubles.append(exc)
            return None
        self._unbegun.pop(shard.shard_id, None)
        is_late = not was_there or now - first.planned_at >= KEPT
        gap = is_orphan or (is_late and not known)
        origin = KinesisOrigin(first=str(earliest or ""), whole_since=since if known else now, planned_at=now, gap=gap)
        if not self.writes:
            since = origin.whole_since
            return Head(after=0, anchor=earliest, whole_since=None if earliest else since, latest=since, gap=origin.gap)
        self.chains.begin(self.place(shard.shard_id), origin)
        head = self.chains.head(self.place(shard.shard_id))
        if head is None:
            raise AssertionError("a chain that was begun has a head")
        return head

    def _earliest(self, shard: Shard) -> int:
        """The sequence number of the earliest record that a shard has now; 0 without any."""
        with closing(self.log.read(self.stream, shard.shard_id, 0)) as batches:
            for batch in batches:
                if batch.records:
                    return batch.records[0].sequence
                if batch.is_end or not batch.behind_seconds:
                    break
        return 0

    def _end(self, shard_id: str, head: Head) -> None:
        """End the chain of a shard that the stream lists no more: all its records are older than the retention."""
        # It is listed again, or records are still there, or may be landed.
        if self.now() - head.latest < KEPT or shard_id in self._lost or shard_id in self._damaged:
            return
        end = str(head.after)
        link = KinesisLink(after=end, last=end, manifest_id="", arrived_at=head.latest, gap=True, closes=True)
        self.gone[shard_id] = ShardLink(shard_id=shard_id, link=link)


def with_manifest(links: Sequence[ShardLink], manifest_id: str) -> list[ShardLink]:
    """Links for a manifest."""
    return [
        each.model_copy(update={"link": each.link.model_copy(update={"manifest_id": manifest_id})}) for each in links
    ]

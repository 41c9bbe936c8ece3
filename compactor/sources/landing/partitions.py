"""The partitions of a log that may be read now, each from where its chain ends."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.documents.landing import (
    EmptySeen,
    FirstLanding,
    LandedLink,
    LandedLoss,
    LogOrigin,
    PartitionLink,
    PartitionLoss,
)
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable, StuckError
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LiveLog, Log, Partition
from compactor.core.map_ordered import map_ordered
from compactor.ledger.landing.chain import heads
from compactor.ledger.landing.chains import Head, LogChains, PartitionPlace
from compactor.sources.landing.landing import Settled
from compactor.sources.landing.lines import NewLines
from compactor.sources.landing.partition_reading import KEPT, MARGIN, PartitionReader, Piece


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of the partitions of a log.

    Attributes:
        ready: Those that may be read now: not closed, and all parents are.
        waiting: Those that have a parent which is not.
    """

    ready: Sequence[Partition]
    waiting: Sequence[Partition]


def lineage(partitions: Sequence[Partition], heads: Mapping[str, Head | None]) -> Lineage:
    """Divide the partitions that are not closed.

    Args:
        partitions: Those that the log lists.
        heads: Of each of them, and of each parent that has a chain, where its chain ends; None without a chain.
    """
    listed = {partition.partition_id for partition in partitions}
    ready, waiting = list[Partition](), list[Partition]()
    for partition in partitions:
        head = heads.get(partition.partition_id)
        if head is not None and head.closed:
            continue
        waits = any(_is_open(heads.get(parent), is_listed=parent in listed) for parent in partition.parents)
        (waiting if waits else ready).append(partition)  # guard: a shard begins once its parents ended
    return Lineage(ready, waiting)


def _is_open(head: Head | None, *, is_listed: bool) -> bool:
    """Whether a parent may have records that are not landed. One without a chain that is gone has none."""
    return is_listed if head is None else not head.closed


NOTED_EVERY = timedelta(hours=1)
"""How often it is noted that an idle partition has no further record."""


@dataclass(slots=True, kw_only=True)
class Partitions:
    """The readers of one plan.

    Attributes:
        live: The log that is landed.
        began_at: When the landing began.
        until: Records that arrived later may wait for the next landing.
        new_lines: Makes what gathers the lines of a partition.
        piece_bytes: About how many bytes of lines a piece has.
        writes: Whether chains may be begun; not in a dry run.
        readers: By the id of their partition.
        waiting: How many shards have parents that are not landed whole.
        gone: Partitions that the log lists no more, by id: links that end their chains with a gap.
        are_overtaken: Whether others landed records of a partition meanwhile. The next landing goes on behind them.
        troubles: Why partitions could not be read further.
    """

    chains: LogChains
    log: Log
    name: LogName
    live: LiveLog
    new_lines: NewLines
    piece_bytes: int
    now: Callable[[], datetime]
    began_at: datetime
    until: datetime
    writes: bool
    readers: dict[str, PartitionReader] = field(default_factory=dict)
    waiting: int = 0
    gone: dict[str, PartitionLink] = field(default_factory=dict)
    are_overtaken: bool = False
    troubles: list[CompactorError] = field(default_factory=list)
    _lost: set[str] = field(default_factory=set)
    _damaged: set[str] = field(default_factory=set)  # partitions whose chain has a record that cannot be read
    _ended: dict[str, Head] = field(default_factory=dict)  # where no chain says so, as in a dry run
    _unbegun: dict[str, datetime] = field(default_factory=dict)  # those with trouble, and since when records may wait

    def place(self, partition_id: str) -> PartitionPlace:
        """The chain of a partition."""
        return PartitionPlace(self.name, self.live.log_id, partition_id)

    def check(self) -> None:
        """Make sure that what was read is of the log that is landed: it is asked by name, which another may have.

        Raises:
            StoreUnavailable: It is not, or records may have gone that were thought to be kept.
        """
        found, expected = self.log.describe(self.name), self.live
        if found is None or found.log_id != expected.log_id:  # guard: the id of a log is compared once it was read
            raise StoreUnavailable(
                f"{self.name}: deleted or made again while it was landed; expected the id {expected.log_id}"
            )
        if found.retention < expected.retention:
            raise StoreUnavailable(f"{self.name}: its retention was lowered while it was landed; plan it again")

    def refresh(self) -> None:
        """Find the partitions that may be read now: at the beginning, and after one was closed."""
        partitions = self.log.partitions(self.name)
        self.check()
        listed = {partition.partition_id for partition in partitions}
        first = self._first_landing(listed)
        known = dict.fromkeys(each for partition in partitions for each in (partition.partition_id, *partition.parents))
        ends = self._heads(known, first)
        for partition_id in known:
            head = ends[partition_id]
            # guard: a shard that is listed no more ends with a gap
            if partition_id not in listed and head is not None and not head.closed:
                self._end(partition_id, head)
        found = lineage(partitions, ends)
        self.waiting = len(found.waiting)
        new = [
            each
            for each in found.ready
            if each.partition_id not in self.readers and each.partition_id not in self._damaged
        ]

        def begun(partition: Partition) -> Head | None:
            return ends[partition.partition_id] or self._begun(partition, ends, first)

        for partition, head in zip(new, map_ordered(begun, new), strict=True):
            if head is not None and not head.closed:  # as it may be since they were listed
                self.readers[partition.partition_id] = self._reader(partition, head)

    def close(self) -> None:
        """End all reading."""
        for reader in self.readers.values():
            reader.close()

    def unread(self) -> list[PartitionReader]:
        """The readers that may have more. First those that were read least, and of these those that wait longest."""
        found = [reader for reader in self.readers.values() if not reader.is_done]
        return sorted(found, key=lambda reader: (reader.pieces, reader.head.latest))

    def piece(self, reader: PartitionReader) -> Piece | None:
        """The next records of a partition. Trouble with one does not keep the others from being landed."""
        found = reader.piece()
        if reader.trouble is not None:
            self._lost.add(reader.partition.partition_id)
            self.troubles.append(reader.trouble)
        return found

    def settled(self, settled: Settled) -> None:
        """Take in what came of a draft. What others landed waits for the next landing; children of ended ones begin."""
        self._lost.update(settled.lost)
        self.are_overtaken |= bool(settled.lost)
        for partition_id in settled.lost & self.readers.keys():
            self.readers[partition_id].is_done = True
        ended = [each for each in settled.links if each.link.closes]
        if not self.writes:
            for each in ended:
                self._ended[each.partition_id] = Head(
                    each.link.end, each.link.end, None, each.link.arrived_at, closed=True
                )
        if ended:
            self.refresh()

    def losses(self, manifest_id: str) -> list[PartitionLoss]:
        """What of shards without a further record may be lost, for a manifest that is to name it."""
        found = list[PartitionLoss]()
        for partition_id, reader in self._idle().items():
            if reader.gap and reader.empty_since is not None:
                loss = LandedLoss(
                    number=reader.head.losses,
                    after=str(reader.after),
                    seen_at=reader.empty_since,
                    manifest_id=manifest_id,
                )
                found.append(PartitionLoss(partition_id=partition_id, loss=loss))
        return found

    def note_idle(self) -> None:
        """Note which partitions have no further record, unless one may be lost that no manifest names."""
        for partition_id, reader in self._idle().items():
            since, head = reader.empty_since, reader.head
            if since is None or reader.gap or reader.after != head.after:
                continue
            if head.whole_since is None or since - head.whole_since >= NOTED_EVERY:
                self.chains.note_seen(self.place(partition_id), EmptySeen(after=str(reader.after), at=since))

    def age_seconds(self) -> float | None:
        """For how long a record of any partition may have waited that is not landed; None without a partition."""
        now = self.now()
        unbegun = [max((now - since).total_seconds(), 0.0) for since in self._unbegun.values()]
        return max([*unbegun, *(reader.age_seconds(now) for reader in self.readers.values())], default=None)

    @property
    def are_read(self) -> bool:
        """Whether some partition was read, and without trouble."""
        return any(each.behind_seconds is not None and each.trouble is None for each in self.readers.values())

    def _idle(self) -> dict[str, PartitionReader]:
        """The readers of partitions that were seen to have no further record."""
        return {
            partition_id: reader
            for partition_id, reader in self.readers.items()
            if reader.empty_since is not None and partition_id not in self._lost
        }

    def _heads(self, partition_ids: Iterable[str], first: FirstLanding) -> dict[str, Head | None]:
        """Where the chains end. One with a damaged record counts as open: it waits, its children do, and no other."""
        known = dict[str, Head | None]()
        for partition_id, found in heads(self._head, partition_ids):
            if isinstance(found, StuckError) and partition_id not in self._damaged:
                self._damaged.add(partition_id)
                self._unbegun[partition_id] = first.landed_at
                self.troubles.append(found)
            known[partition_id] = Head(0, 0, None, first.landed_at) if isinstance(found, StuckError) else found
        return known

    def _head(self, partition_id: str) -> Head | None:
        return self._ended.get(partition_id) or self.chains.head(self.place(partition_id))

    def _reader(self, partition: Partition, head: Head) -> PartitionReader:
        return PartitionReader(
            log=self.log,
            name=self.name,
            partition=partition,
            head=head,
            until=self.until,
            new_lines=self.new_lines,
            piece_bytes=self.piece_bytes,
            now=self.now,
            kept=max(KEPT, self.live.retention - MARGIN),
            is_done=self._is_landed(head),
        )

    def _is_landed(self, head: Head) -> bool:
        """Whether an earlier landing with the same bound landed what a partition had by then."""
        if self.live.tells_gaps:  # it does not tell when records came; a reading has an end in any case
            return False
        return self.until < self.began_at and head.landed_to is not None and head.landed_to > self.until

    def _first_landing(self, listed: set[str]) -> FirstLanding:
        """When the log was first landed, and what it had then."""
        known = self.chains.first_landing(self.name, self.live.log_id)
        if known is not None:
            return known
        first = FirstLanding(landed_at=self.began_at, partitions=tuple(sorted(listed)))
        if not self.writes:
            return first
        self.chains.begin_log(self.name, self.live.log_id, first)
        return self.chains.first_landing(self.name, self.live.log_id) or first

    def _begun(self, partition: Partition, heads: Mapping[str, Head | None], first: FirstLanding) -> Head | None:
        """Begin the chain of a partition; None if it cannot be read now.

        That of a shard begins at its beginning, so that what is landed of its parents comes before. That of a partition
        of a topic begins at the earliest record that it has when it is first seen, or at its beginning, if others were
        landed before it was there: then what retention has removed of it is told.
        """
        was_there, now = partition.partition_id in first.partitions, self.now()
        landed = [found for each in partition.parents if (found := heads.get(each)) is not None]
        known = [each for each in landed if each.after or not was_there]  # an empty one tells nothing of that time
        # A parent that the log had since the first landing, and that is gone without a chain, was never landed.
        gone = [each for each in partition.parents if heads.get(each) is None]
        is_orphan = any(each in first.partitions or not was_there for each in gone)
        since = max((each.latest for each in known), default=first.landed_at)
        try:
            earliest, is_told = (0, False) if known else self._earliest(partition)
        except (StoreUnavailable, AccessError) as exc:
            self._unbegun[partition.partition_id] = since
            self.troubles.append(exc)
            return None
        self._unbegun.pop(partition.partition_id, None)
        is_late = not was_there or now - first.landed_at >= KEPT
        origin = LogOrigin(
            after=str(earliest - 1) if is_told and was_there else "0",
            first="" if is_told else str(earliest or ""),
            whole_since=since if known else now,
            begun_at=now,
            gap=not is_told and (is_orphan or (is_late and not known)),
        )
        if not self.writes:
            after, since = int(origin.after), origin.whole_since
            anchor = int(origin.first or after)
            return Head(after, anchor, whole_since=None if origin.first else since, latest=since, gap=origin.gap)
        if is_told:
            self.check()
        self.chains.begin(self.place(partition.partition_id), origin)
        head = self.chains.head(self.place(partition.partition_id))
        if head is None:
            raise AssertionError("a chain that was begun has a head")
        return head

    def _earliest(self, partition: Partition) -> tuple[int, bool]:
        """The position of the earliest record that a partition has now, and whether that is what its log has left.

        Without any record it is 0, unless the log tells where the next one would be.
        """
        with closing(self.log.read(self.name, partition.partition_id, 0, self.piece_bytes)) as batches:
            for batch in batches:
                if batch.kept_from is not None:
                    return batch.kept_from, True
                if batch.records:
                    return batch.records[0].position, False
                if batch.is_end or not batch.behind_seconds:
                    break
        return 0, False

    def _end(self, partition_id: str, head: Head) -> None:
        """End the chain of a partition that the log lists no more: all its records are older than the retention."""
        # It is listed again, or records are still there, or may be landed.
        if self.now() - head.latest < KEPT or partition_id in self._lost or partition_id in self._damaged:
            return
        end = str(head.after)
        link = LandedLink(after=end, last=end, manifest_id="", arrived_at=head.latest, gap=True, closes=True)
        self.gone[partition_id] = PartitionLink(partition_id=partition_id, link=link)


def with_manifest(links: Sequence[PartitionLink], manifest_id: str) -> list[PartitionLink]:
    """Links for a manifest."""
    return [
        each.model_copy(update={"link": each.link.model_copy(update={"manifest_id": manifest_id})}) for each in links
    ]

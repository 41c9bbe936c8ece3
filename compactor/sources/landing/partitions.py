"""Reads a log's partitions, each from the end of its chain, and detects whether retention removed records first.

Some logs report what they have left, which shows gaps exactly. For any other log, the last landed record must still
exist when reading continues, or less time must have passed than the shortest retention.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from compactor.core.documents.landing import EmptySeen, FirstLanding, LandedLink, LogOrigin
from compactor.core.errors import AccessError, CompactorError, StoreUnavailable, StuckError
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, LiveLog, Log, LogRecord, Partition
from compactor.core.map_ordered import map_ordered
from compactor.ledger.landing.chains import Head, LogChains
from compactor.sources.landing.drafts import Landing
from compactor.sources.landing.lines import NewLines, RecordLines

MARGIN = timedelta(hours=1)
"""The maximum clock difference plus the duration of a read."""

KEPT = timedelta(days=1) - MARGIN
"""Streams keep younger records: the shortest retention is a day."""

MOST_EMPTY_ANSWERS = 10
"""How many empty responses at its tip a closed shard gets before it is left to the next landing."""

NOTED_EVERY = timedelta(hours=1)
"""How often it is noted that an idle partition has no new record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The parameters with which one landing reads a log's partitions.

    Attributes:
        until: Records that arrived later may wait for the next landing.
        new_lines: Creates the collector for a piece's lines.
        kept: Younger records are never removed, unless the retention is lowered.
    """

    log: Log
    name: LogName
    until: datetime
    new_lines: NewLines
    piece_bytes: int
    now: Callable[[], datetime]
    kept: timedelta = KEPT


@dataclass(slots=True)
class PartitionReader:
    """Reads one partition, piece by piece, from its chain's head.

    Attributes:
        is_done: Whether there is nothing more to read now.
        behind_seconds: How far the last response lagged behind the newest record; None if unknown.
        gap: Whether records after `after` may be lost; the next piece reports it.
        after: The position of the last record read, or the end of the chain.
        empty_since: When the partition was last found to have no record after the last piece; None if it was not.
    """

    of: Reading
    partition: Partition
    head: Head
    is_done: bool = False
    trouble: CompactorError | None = None
    pieces: int = 0
    behind_seconds: float | None = None
    empty_since: datetime | None = None
    gap: bool = field(init=False)
    after: int = field(init=False)
    _anchor: int = field(init=False)
    _whole_since: datetime | None = field(init=False)
    _latest: datetime = field(init=False)
    _batches: Generator[Batch] = field(init=False)
    _held: tuple[datetime, Batch] | None = field(default=None, init=False)  # when it was requested, and the response
    _empty_answers: int = field(default=0, init=False)  # at the tip

    def __post_init__(self) -> None:
        self.after, self._anchor, self.gap = self.head.after, self.head.anchor, self.head.gap
        self._whole_since, self._latest = self.head.whole_since, self.head.latest
        self._batches = self._read()

    def piece(self, manifest_id: str) -> tuple[LandedLink, RecordLines] | None:
        """The next records: their link, still without an object, and their lines; None if there are no more now.

        An error ends the read after them.
        """
        lines, after, begins = self.of.new_lines(self.of.name, self.partition), self.after, 0
        gap, closes = False, False
        while not self.is_done and lines.weight_bytes < self.of.piece_bytes:
            try:
                asked_at, batch = self._held or (self.of.now(), next(self._batches))
            except (StoreUnavailable, AccessError) as exc:
                self.trouble, self.is_done, self.empty_since = exc, True, None
                break
            self._held = (asked_at, batch) if begins and self.gap else None
            if self._held is not None:
                break  # the records before it are complete: the next piece starts with the gap
            gap, self.gap = gap or self.gap, False
            lines.add(batch.records)
            if gap and batch.kept_from:
                begins = batch.kept_from
            if batch.records:
                begins = begins or batch.records[0].position
                self.after = batch.records[-1].position
            self.after = max(self.after, batch.reached)
            closes = batch.is_end
            self.is_done = self._note(batch, asked_at)
        if not lines.records and not closes and self.after == after:
            self.gap |= gap
            return None
        self.pieces += 1
        link = LandedLink(
            partition_id=self.partition.partition_id,
            after=str(after),
            last=str(self.after),
            begins=str(begins or ""),
            manifest_id=manifest_id,
            lines=lines.lines,
            records=lines.records,
            tombstones=lines.tombstones,
            packed=lines.packed,
            strays=lines.strays,
            arrived_at=self._latest,
            gap=gap,
            closes=closes,
        )
        return link, lines

    def _note(self, batch: Batch, asked_at: datetime) -> bool:
        """Note the times in a response; return whether there is nothing more to read now."""
        is_at_tip, arrived_at = not batch.behind_seconds and not batch.is_end, None
        if batch.records:
            arrived_at = batch.records[-1].arrived_at
            self._latest = arrived_at or self._latest
        self.behind_seconds = None if batch.is_held else batch.behind_seconds
        if is_at_tip and not batch.records and not batch.is_held:
            self.empty_since = arrived_at = asked_at
            self._latest = max(self._latest, asked_at)
            self._empty_answers += 1
        # guard: the end of a closed shard is queried
        if self.partition.is_closed and self._empty_answers < MOST_EMPTY_ANSWERS:
            is_at_tip = False  # its end is still to come, possibly in a separate response
        return batch.is_end or is_at_tip or (arrived_at is not None and self._latest > self.of.until)

    def age_seconds(self, now: datetime) -> float:
        """The longest possible wait of an unlanded record in the partition, as far as known."""
        unread = max((now - self._latest).total_seconds(), 0.0)
        return unread if self.behind_seconds is None or self.trouble is not None else min(unread, self.behind_seconds)

    def close(self) -> None:
        self._batches.close()

    def _read(self) -> Generator[Batch]:
        """All batches from the head on, without records already read."""
        while True:
            asked_at, is_proven, of = self.of.now(), False, self.of
            reading = of.log.read(of.name, self.partition.partition_id, self._anchor, of.piece_bytes)
            with closing(reading) as batches:
                for batch in batches:
                    is_telling = bool(batch.records) or batch.is_end or not batch.behind_seconds
                    if batch.kept_from is not None:  # guard: a log that tells what it has left tells a gap
                        self.gap |= batch.kept_from > self.after + 1
                        is_proven = True
                    elif is_telling and not is_proven:
                        self.gap |= not self._is_whole(batch.records, asked_at)
                        is_proven = True
                    fresh = [each for each in batch.records if each.position > self.after]
                    if batch.records:
                        self._anchor, self._whole_since = batch.records[-1].position, None
                    self._anchor = max(self._anchor, batch.reached)
                    yield replace(batch, records=fresh)
                    arrived_at = fresh[-1].arrived_at if fresh else None
                    if arrived_at is not None and of.now() - arrived_at > of.kept:
                        break  # retention is near: read again while the last record still exists

    def _is_whole(self, records: Sequence[LogRecord], asked_at: datetime) -> bool:
        """Whether nothing can be missing before the first records of a read."""
        # guard: the last landed record must come first
        if self._anchor and records and records[0].position == self._anchor:
            return True
        # guard: what was seen more than a day ago proves nothing
        return self._whole_since is not None and asked_at - self._whole_since < KEPT


@dataclass(slots=True, kw_only=True)
class Partitions:
    """The partitions in one landing.

    Attributes:
        landing: Their chains.
        writes: Whether chains may be started; not in a dry run.
        waiting: How many shards have parents that are not completely landed.
        gone: For partitions that are no longer listed: links that end their chains with a gap, without a manifest.
        are_overtaken: Whether others landed records of a partition meanwhile, for the next landing to follow.
    """

    landing: Landing
    of: Reading
    live: LiveLog
    began_at: datetime
    writes: bool
    readers: dict[str, PartitionReader] = field(default_factory=dict)
    waiting: int = 0
    gone: list[LandedLink] = field(default_factory=list)
    are_overtaken: bool = False
    troubles: list[CompactorError] = field(default_factory=list)
    _lost: set[str] = field(default_factory=set)
    _damaged: set[str] = field(default_factory=set)  # partitions whose chain has an unreadable record
    _ended: dict[str, Head] = field(default_factory=dict)  # ends that are in no chain, as in a dry run
    _unbegun: dict[str, datetime] = field(default_factory=dict)  # those with errors, and since when records may wait

    @property
    def _chains(self) -> LogChains:
        return self.landing.chains

    def check(self) -> None:
        """Check that the records are from the log being landed. It is read by name, which a new log may have taken.

        Raises:
            StoreUnavailable: They are not, or its retention was lowered, so that records may be lost.
        """
        name, found, expected = self.of.name, self.of.log.describe(self.of.name), self.live
        if found is None or found.log_id != expected.log_id:  # guard: the id of a log is compared after reading it
            raise StoreUnavailable(
                f"{name}: deleted or recreated while being landed; expected the id {expected.log_id}"
            )
        if found.retention < expected.retention:
            raise StoreUnavailable(f"{name}: its retention was lowered while being landed; plan it again")

    def refresh(self) -> None:
        """Find the partitions that may be read now: at the start, and after one ended."""
        partitions = self.of.log.partitions(self.of.name)
        self.check()
        listed = {each.partition_id for each in partitions}
        first = self._first_landing(listed)
        known = dict.fromkeys(one for each in partitions for one in (each.partition_id, *each.parents))
        found = zip(known, map_ordered(self._head, known), strict=True)
        heads = {partition_id: self._sound(partition_id, head, first) for partition_id, head in found}
        for partition_id, head in heads.items():
            # guard: a shard that is listed no more ends with a gap
            if partition_id not in listed and head is not None and not head.closed:
                self._end(partition_id, head)
        waiting, new = 0, list[Partition]()
        for partition in partitions:
            head = heads[partition.partition_id]
            if head is not None and head.closed:
                continue
            # A parent that no longer exists, and has no chain, has no records.
            ends = [(each in listed, heads[each]) for each in partition.parents]
            # guard: a shard begins once its parents ended
            if any(is_listed if parent is None else not parent.closed for is_listed, parent in ends):
                waiting += 1
            elif partition.partition_id not in self.readers.keys() | self._damaged:
                new.append(partition)
        self.waiting = waiting

        def begun(partition: Partition) -> Head | None:
            return heads[partition.partition_id] or self._begun(partition, heads, first)

        for partition, head in zip(new, map_ordered(begun, new), strict=True):
            if head is not None and not head.closed:  # it may have closed since the listing
                reader = PartitionReader(self.of, partition, head, is_done=self._is_landed(head))
                self.readers[partition.partition_id] = reader

    def close(self) -> None:
        for reader in self.readers.values():
            reader.close()

    def unread(self) -> list[PartitionReader]:
        """The readers that may have more: those read least first, then those that have waited longest."""
        found = [reader for reader in self.readers.values() if not reader.is_done]
        return sorted(found, key=lambda reader: (reader.pieces, reader.head.latest))

    def piece(self, reader: PartitionReader, manifest_id: str) -> tuple[LandedLink, RecordLines] | None:
        """A partition's next records. An error in one partition does not block the others."""
        found = reader.piece(manifest_id)
        if reader.trouble is not None:
            self._lost.add(reader.partition.partition_id)
            self.troubles.append(reader.trouble)
        return found

    def settled(self, links: Iterable[LandedLink], lost: Iterable[LandedLink]) -> None:
        """Note which links were won. Partitions that others landed wait; children of ended ones start."""
        for partition_id in {link.partition_id for link in lost}:
            self._lost.add(partition_id)
            self.are_overtaken = True
            if partition_id in self.readers:
                self.readers[partition_id].is_done = True
        if ended := [link for link in links if link.closes]:
            if not self.writes:
                self._ended |= {link.partition_id: Head.behind(link) for link in ended}
            self.refresh()

    def idle_gaps(self, manifest_id: str) -> list[LandedLink]:
        """Links for possible losses in partitions without a new record, for one manifest."""
        return [
            LandedLink.of_idle_gap(partition_id, reader.after, since, manifest_id)
            for partition_id, reader, since in self._idle()
            if reader.gap
        ]

    def note_idle(self) -> None:
        """Note which partitions have no new record, unless they have an unreported gap."""
        for partition_id, reader, since in self._idle():
            known = reader.head.whole_since
            is_due = known is None or since - known >= NOTED_EVERY
            if is_due and not reader.gap and reader.after == reader.head.after:
                self._chains.note_seen(self.landing.place(partition_id), EmptySeen(after=str(reader.after), at=since))

    def age_seconds(self) -> float | None:
        """The longest possible wait of a record in any partition; None without a partition."""
        now = self.of.now()
        unbegun = [max((now - since).total_seconds(), 0.0) for since in self._unbegun.values()]
        return max([*unbegun, *(reader.age_seconds(now) for reader in self.readers.values())], default=None)

    @property
    def are_read(self) -> bool:
        """Whether some partition was read without errors."""
        return any(each.behind_seconds is not None and each.trouble is None for each in self.readers.values())

    def _idle(self) -> list[tuple[str, PartitionReader, datetime]]:
        """The readers of partitions that were found to have no new record, each with the time."""
        return [
            (partition_id, reader, reader.empty_since)
            for partition_id, reader in self.readers.items()
            if reader.empty_since is not None and partition_id not in self._lost
        ]

    def _head(self, partition_id: str) -> Head | StuckError | None:
        try:
            return self._ended.get(partition_id) or self._chains.head(self.landing.place(partition_id))
        except StuckError as exc:
            return exc

    def _sound(self, partition_id: str, head: Head | StuckError | None, first: FirstLanding) -> Head | None:
        """A chain's head. A damaged chain counts as open: it waits, as do its children."""
        if not isinstance(head, StuckError):
            return head
        if partition_id not in self._damaged:
            self._damaged.add(partition_id)
            self._unbegun[partition_id] = first.landed_at
            self.troubles.append(head)
        return Head(0, 0, None, first.landed_at)

    def _is_landed(self, head: Head) -> bool:
        """Whether an earlier landing with the same limit landed everything that a partition had by then."""
        if self.live.tells_gaps:  # such a log gives no arrival times; its reads always end
            return False
        until = self.of.until
        return until < self.began_at and head.landed_to is not None and head.landed_to > until

    def _first_landing(self, listed: set[str]) -> FirstLanding:
        """When the log was first landed, and its partitions at that time."""
        name, log_id = self.of.name, self.live.log_id
        known = self._chains.first_landing(name, log_id)
        if known is not None:
            return known
        first = FirstLanding(landed_at=self.began_at, partitions=tuple(sorted(listed)))
        if not self.writes:
            return first
        self._chains.begin_log(name, log_id, first)
        return self._chains.first_landing(name, log_id) or first

    def _begun(self, partition: Partition, heads: Mapping[str, Head | None], first: FirstLanding) -> Head | None:
        """Start a partition's chain; None if it cannot be read now.

        A shard's chain starts at the shard's beginning, so that it follows the landed records of its parents. A topic
        partition's chain starts at its earliest record when it is first seen; or at its beginning, if other partitions
        were landed before it existed: then whatever retention has removed is a gap.
        """
        was_there, now = partition.partition_id in first.partitions, self.of.now()
        landed = {each: found for each in partition.parents if (found := heads.get(each)) is not None}
        # An empty parent proves nothing about that time. Gap links occupy positions, but are not records.
        known = [head for each, head in landed.items() if not was_there or (head.after and self._had_records(each))]
        # A parent that existed at the first landing, and is missing without a chain, was never landed.
        gone = [each for each in partition.parents if heads.get(each) is None]
        is_orphan = any(each in first.partitions or not was_there for each in gone)
        since = max((each.latest for each in known), default=first.landed_at)
        try:
            earliest, is_reported = (0, False) if known else self._earliest(partition)
        except (StoreUnavailable, AccessError) as exc:
            self._unbegun[partition.partition_id] = since
            self.troubles.append(exc)
            return None
        self._unbegun.pop(partition.partition_id, None)
        is_late = not was_there or now - first.landed_at >= KEPT
        origin = LogOrigin(
            after=str(earliest - 1) if is_reported and was_there else "0",
            first="" if is_reported else str(earliest or ""),
            whole_since=since if known else now,
            begun_at=now,
            gap=not is_reported and (is_orphan or (is_late and not known)),
        )
        if not self.writes:
            return Head.begun(origin)
        if is_reported:
            self.check()
        return self._chains.begin(self.landing.place(partition.partition_id), origin)

    def _had_records(self, partition_id: str) -> bool:
        """Whether a record of a partition was landed. If it ended in a dry run, its positions decide."""
        links = self._chains.chain(self.landing.place(partition_id)).links()
        return partition_id in self._ended or any(link.records for link in links)

    def _earliest(self, partition: Partition) -> tuple[int, bool]:
        """The position of a partition's earliest record now, and whether the log itself reported it.

        Without any record it is 0, unless the log reports the position of the next one.
        """
        of = self.of
        with closing(of.log.read(of.name, partition.partition_id, 0, of.piece_bytes)) as batches:
            for batch in batches:
                if batch.kept_from is not None:
                    return batch.kept_from, True
                if batch.records:
                    return batch.records[0].position, False
                if batch.is_end or not batch.behind_seconds:
                    break
        return 0, False

    def _end(self, partition_id: str, head: Head) -> None:
        """End the chain of a partition that is no longer listed: all its records are past the retention."""
        # Its records may still be kept or be landed, or it was listed again.
        if self.of.now() - head.latest < KEPT or partition_id in self._lost or partition_id in self._damaged:
            return
        if any(link.partition_id == partition_id for link in self.gone):
            return
        end, at = str(head.after), head.latest
        ends = {"after": end, "last": end}
        self.gone.append(
            LandedLink(partition_id=partition_id, manifest_id="", arrived_at=at, gap=True, closes=True, **ends)
        )

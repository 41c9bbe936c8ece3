"""Reads a partition from where its chain ends, and tells whether retention may have removed something in between.

A log that tells what it has left tells gaps exactly. Of another one, the last record that was had has to be there still
when reading goes on, or the time since has to be shorter than any retention.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Batch, Log, LogRecord, Partition
from compactor.ledger.landing.chains import Head
from compactor.sources.landing.lines import NewLines, RecordLines

MARGIN = timedelta(hours=1)
"""How far clocks may differ, and how long a reading may take."""

MOST_EMPTY_ANSWERS = 10
"""How many answers without records a closed shard gives at its tip before the next landing asks it again."""

KEPT = timedelta(days=1) - MARGIN
"""No stream removes records that are younger: the shortest retention is a day."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of a partition that follow each other.

    Attributes:
        after: The position behind which they are.
        last: That of the last one, or of an offset behind it that has none; `after` without any.
        begins: That of the first one, or of the first one that may be left behind a gap; 0 without any.
        lines: What they are as lines.
        latest: When the last one arrived, or a later time at which there was no further one.
        gap: Whether records between `after` and the first of them may be lost.
        closes: Whether the partition ended with them.
    """

    after: int
    last: int
    begins: int
    lines: RecordLines
    latest: datetime
    gap: bool
    closes: bool


@dataclass(slots=True, kw_only=True)
class PartitionReader:
    """Reads one partition, piece by piece.

    Attributes:
        head: Where the chain of the partition ends.
        until: Records that arrived later may wait for the next landing.
        kept: No record is removed that is younger, unless the retention is lowered.
        new_lines: Makes what gathers the lines of a piece.
        piece_bytes: About how many bytes of lines a piece has.
        now: Tells the time.
        is_done: Whether there is no more to read now.
        trouble: Why it could not be read further; None if it could.
        pieces: How many were read.
        behind_seconds: How far the last answer was behind the newest record; None before the first one, and if that is
            not known.
        gap: Whether records behind `after` may be lost; the next piece tells.
        after: The position of the last record that was read, or behind which the chain ends.
        empty_since: When the partition was last seen to have no record behind the last piece; None if it was not.
    """

    log: Log
    name: LogName
    partition: Partition
    head: Head
    until: datetime
    new_lines: NewLines
    piece_bytes: int
    now: Callable[[], datetime]
    kept: timedelta = KEPT
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
    _held: tuple[datetime, Batch] | None = field(default=None, init=False)  # when it was asked for, and what came
    _empty_answers: int = field(default=0, init=False)  # at the tip

    def __post_init__(self) -> None:
        self.after, self._anchor, self.gap = self.head.after, self.head.anchor, self.head.gap
        self._whole_since, self._latest = self.head.whole_since, self.head.latest
        self._batches = self._read()

    def piece(self) -> Piece | None:
        """The next records; None if there are no more now.

        Trouble ends the reading behind what was read until then, which is not read again.
        """
        lines, after, begins, gap, closes = self.new_lines(self.name, self.partition), self.after, 0, False, False
        while not self.is_done and lines.weight_bytes < self.piece_bytes:
            try:
                asked_at, batch = self._held or (self.now(), next(self._batches))
            except (StoreUnavailable, AccessError) as exc:
                self.trouble, self.is_done, self.empty_since = exc, True, None
                break
            self._held = (asked_at, batch) if begins and self.gap else None
            if self._held is not None:
                break  # the records before it are whole: the next piece begins with the gap
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
        return Piece(after, self.after, begins, lines, self._latest, gap, closes)

    def _note(self, batch: Batch, asked_at: datetime) -> bool:
        """Note what an answer tells of the time; returns whether there is no more to read now."""
        is_at_tip, arrived_at = not batch.behind_seconds and not batch.is_end, None
        if batch.records:
            arrived_at = batch.records[-1].arrived_at
            self._latest = arrived_at or self._latest
        self.behind_seconds = None if batch.is_held else batch.behind_seconds
        if is_at_tip and not batch.records and not batch.is_held:
            self.empty_since = arrived_at = asked_at
            self._latest = max(self._latest, asked_at)
            self._empty_answers += 1
        # guard: the end of a closed shard is asked for
        if self.partition.is_closed and self._empty_answers < MOST_EMPTY_ANSWERS:
            is_at_tip = False  # its end is to come, perhaps in an answer of its own
        return batch.is_end or is_at_tip or (arrived_at is not None and self._latest > self.until)

    def age_seconds(self, now: datetime) -> float:
        """For how long a record of the partition that is not landed may have waited, as far as is known."""
        unread = max((now - self._latest).total_seconds(), 0.0)
        return unread if self.behind_seconds is None or self.trouble is not None else min(unread, self.behind_seconds)

    def close(self) -> None:
        """End reading."""
        self._batches.close()

    def _read(self) -> Generator[Batch]:
        """All batches from the head on, without records that were had before."""
        while True:
            asked_at, is_proven = self.now(), False
            reading = self.log.read(self.name, self.partition.partition_id, self._anchor, self.piece_bytes)
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
                    if arrived_at is not None and self.now() - arrived_at > self.kept:
                        break  # retention is near: the last record has to be there still when the next ones are read

    def _is_whole(self, records: Sequence[LogRecord], asked_at: datetime) -> bool:
        """Whether nothing can be missing before the first records of a reading."""
        # guard: the last landed record has to come first
        if self._anchor and records and records[0].position == self._anchor:
            return True
        # guard: what was seen more than a day ago proves nothing
        return self._whole_since is not None and asked_at - self._whole_since < KEPT

"""Reads a shard from where its chain ends, and tells whether retention may have removed something in between."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compactor.core.errors import AccessError, CompactorError, StoreUnavailable
from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import Batch, KinesisLog, Shard, StreamRecord
from compactor.ledger.kinesis.shard_chains import Head
from compactor.manifests.kinesis.lines import ShardLines, Strays

MARGIN = timedelta(hours=1)
"""How far clocks may differ, and how long a reading may take."""

MOST_EMPTY_ANSWERS = 10
"""How many answers without records a closed shard gives at its tip before the next plan asks it again."""

KEPT = timedelta(days=1) - MARGIN
"""No stream removes records that are younger: the shortest retention is a day."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of a shard that follow each other.

    Attributes:
        after: The sequence number behind which they are.
        last: That of the last one; `after` without any.
        begins: That of the first one; 0 without any.
        lines: What they are as lines.
        latest: When the last one arrived, or a later time at which there was no further one.
        gap: Whether records between `after` and the first of them may be lost.
        closes: Whether the shard ended with them.
    """

    after: int
    last: int
    begins: int
    lines: ShardLines
    latest: datetime
    gap: bool
    closes: bool


@dataclass(slots=True, kw_only=True)
class ShardReader:
    """Reads one shard, piece by piece.

    Attributes:
        head: Where the chain of the shard ends.
        until: Records that arrived later may wait for the next plan.
        kept: No record is removed that is younger, unless the retention is lowered.
        stray_rule: See `ShardLines`.
        now: Tells the time.
        is_done: Whether there is no more to read now.
        trouble: Why it could not be read further; None if it could.
        pieces: How many were read.
        behind_seconds: How far the last answer was behind the newest record; None before the first one.
        gap: Whether records behind `after` may be lost; the next piece tells.
        after: The sequence number of the last record that was read, or behind which the chain ends.
        empty_since: When the shard was last seen to have no record behind the last piece; None if it was not.
    """

    log: KinesisLog
    stream: KinesisStream
    shard: Shard
    head: Head
    until: datetime
    stray_rule: Strays
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

    def piece(self, max_bytes: int) -> Piece | None:
        """The next records, about so many bytes of them; None if there are no more now.

        Trouble ends the reading behind what was read until then, which is not read again.
        """
        lines, after, begins, gap, closes = ShardLines(self.shard, self.stray_rule), self.after, 0, False, False
        while not self.is_done and lines.weight_bytes < max_bytes:
            try:
                asked_at, batch = self._held or (self.now(), next(self._batches))
            except (StoreUnavailable, AccessError) as exc:
                self.trouble, self.is_done, self.empty_since = exc, True, None
                break
            self._held = (asked_at, batch) if begins and self.gap else None
            if self._held is not None:
                break  # the records before it are whole: the next piece begins with the gap
            gap, self.gap = gap or self.gap, False
            self.behind_seconds = batch.behind_seconds
            lines.add(batch.records)
            if batch.records:
                begins = begins or batch.records[0].sequence
                self.after, self._latest = batch.records[-1].sequence, batch.records[-1].arrived_at
            is_at_tip = not batch.behind_seconds and not batch.is_end
            if is_at_tip and not batch.records:
                self.empty_since, self._latest = asked_at, max(self._latest, asked_at)
                self._empty_answers += 1
            # guard: the end of a closed shard is asked for
            if self.shard.is_closed and self._empty_answers < MOST_EMPTY_ANSWERS:
                is_at_tip = False  # its end is to come, perhaps in an answer of its own
            closes = batch.is_end
            self.is_done = closes or is_at_tip or self._latest > self.until
        if not lines.records and not closes:
            self.gap |= gap
            return None
        self.pieces += 1
        return Piece(after, self.after, begins, lines, self._latest, gap, closes)

    def age_seconds(self, now: datetime) -> float:
        """For how long a record of the shard that is not landed may have waited, as far as is known."""
        unread = max((now - self._latest).total_seconds(), 0.0)
        return unread if self.behind_seconds is None or self.trouble is not None else self.behind_seconds

    def close(self) -> None:
        """End reading."""
        self._batches.close()

    def _read(self) -> Generator[Batch]:
        """All batches from the head on, without records that were had before."""
        while True:
            asked_at, is_proven = self.now(), False
            with closing(self.log.read(self.stream, self.shard.shard_id, self._anchor)) as batches:
                for batch in batches:
                    is_telling = bool(batch.records) or batch.is_end or not batch.behind_seconds
                    if is_telling and not is_proven:
                        self.gap |= not self._is_whole(batch.records, asked_at)
                        is_proven = True
                    fresh = [each for each in batch.records if each.sequence > self.after]
                    if batch.records:
                        self._anchor, self._whole_since = batch.records[-1].sequence, None
                    yield Batch(fresh, batch.behind_seconds, batch.is_end)
                    if fresh and self.now() - fresh[-1].arrived_at > self.kept:
                        break  # retention is near: the last record has to be there still when the next ones are read

    def _is_whole(self, records: Sequence[StreamRecord], asked_at: datetime) -> bool:
        """Whether nothing can be missing before the first records of a reading."""
        # guard: the last landed record has to come first
        if self._anchor and records and records[0].sequence == self._anchor:
            return True
        # guard: what was seen more than a day ago proves nothing
        return self._whole_since is not None and asked_at - self._whole_since < KEPT

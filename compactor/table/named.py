"""Tracks which manifests are in the table's batches. No two batches may have the same generation of a manifest."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import NamedTuple

from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.documents.table_records import BatchedManifest, TableBatch
from compactor.core.errors import OperatorError
from compactor.core.layout import ManifestKey
from compactor.ledger.ledger import Ledger
from compactor.ledger.table.batches import TableBatches


class Published(NamedTuple):
    """A decided generation of a manifest whose files are published."""

    key: ManifestKey
    generation: int = 1

    @property
    def batched(self) -> BatchedManifest:
        return BatchedManifest(date=self.key.date, manifest_id=self.key.id, generation=self.generation)


def needs_table(outcome: Commit | DeadLetter) -> bool:
    """Whether an outcome changes the table: it has rows, or replaces a generation that may have some."""
    return isinstance(outcome, Commit) and (bool(outcome.outputs) or outcome.generation > 1)


_SEARCHED_BEFORE = timedelta(hours=1)
"""The search for a batch starts this long before its decision: missing one because of clocks would duplicate rows."""

UNTOLD = "another process found it refused, and logged the reason in table.refused"


class PublishedState(Enum):
    """The state of a published manifest, by the batches in the table."""

    UNNAMED = "unnamed"
    VISIBLE = "visible"
    SUPERSEDED = "superseded"  # they have a later generation of it


def check_fence(fence: int, finished: int) -> None:
    """Check that a table that took batches up to the fence has the finished ones."""
    if fence < finished:  # guard: a re-created table gets nothing before a person confirms
        raise OperatorError(
            f"the table's last batch is {fence}, but it had batch {finished}: it was dropped, recreated or restored; "
            "expected the table that took all batches, or `compactor table repair`"
        )


@dataclass(slots=True)
class NamedManifests:
    """The manifests of all unfinished batches.

    A finished batch has only manifests that are done, so it need not be searched for others. Each other batch is read
    once, so that a batch's cost does not grow with their number.

    Skipped batches contain nothing. Their manifests go into later batches, half as many at a time, until the one at
    fault is alone. A skipped batch is finished once each of its manifests is done or held back.

    Attributes:
        batches: The batches on record.
        ledger: Shows which manifests are done.
        replays: Whether the table may lack finished batches, because it was lost.
    """

    batches: TableBatches
    ledger: Ledger
    replays: bool = False
    _finished: int | None = None
    _read: int = 0
    _left: dict[int, list[BatchedManifest]] = field(default_factory=dict)
    _members: dict[int, list[BatchedManifest]] = field(default_factory=dict)
    _generations: dict[str, int] = field(default_factory=dict)
    _limits: dict[Published, int] = field(default_factory=dict)
    _refused: set[int] = field(default_factory=set)
    _in_vain: dict[Published, int] = field(default_factory=dict)  # the last batch that was searched for it

    def read_to(self, fence: int, refused: int = 0) -> None:
        """Read the table's batches that were not read before.

        Args:
            fence: The last batch that the table took or skipped.
            refused: The last batch that it skipped; recorded before anything else happens to the table.

        Raises:
            OperatorError: The table is not the one that took the recorded batches.
        """
        if self._finished is None:
            self._finished = self._read = 0 if self.replays else self.batches.finished()
        check_fence(fence, self._finished)
        if 0 < refused == fence:  # guard: skipped batches are recorded before anything else
            self.batches.refused.record(self.batches.taken(fence, fence), UNTOLD)
        for number in range(self._read + 1, fence + 1):
            # guard: a skipped batch lists nothing
            is_refused = number <= refused and self.batches.refused.has(number)
            self._note(self.batches.taken(number, fence), is_refused=is_refused)
            self._read = number

    def _note(self, batch: TableBatch, *, is_refused: bool) -> None:
        self._members[batch.number], self._left[batch.number] = batch.manifests, list(batch.manifests)
        if is_refused:
            half = max(1, len(batch.manifests) // 2)
            self._refused.add(batch.number)
            for each in batch.manifests:
                one = Published(each.key, each.generation)
                self._limits[one] = min(half, self._limits.get(one, half))
            return
        for each in batch.manifests:
            self._generations[each.manifest_id] = max(each.generation, self._generations.get(each.manifest_id, 0))

    def chosen(self, unnamed: Sequence[Published], most: int) -> Sequence[Published]:
        """The manifests that the next batch may have. Those of refused batches come first, and separately."""
        suspects = sorted((each for each in unnamed if each in self._limits), key=lambda each: self._limits[each])
        return suspects[: min(most, self._limits[suspects[0]])] if suspects else unnamed[:most]

    def state_of(self, published: Published) -> PublishedState:
        named = self._generations.get(published.key.id, 0)
        if named < published.generation:
            return PublishedState.UNNAMED
        return PublishedState.VISIBLE if named == published.generation else PublishedState.SUPERSEDED

    def last_before(self, published: Published) -> Published | None:
        """The last earlier generation of a manifest that a batch brought into the table; None if there is none.

        None also if that one is not done: the next one was decided before its batch took effect, so that the batch only
        removed earlier ones. A generation in no unfinished batch is searched in all batches since its decision.

        Raises:
            RecordUnreadable: A batch or an outcome is unreadable.
        """
        key, named = published.key, self._generations.get(published.key.id, 0)
        for earlier in [named] if self.replays and named else range(published.generation - 1, 0, -1):
            is_done = self.ledger.is_done(key, earlier)
            if earlier == named or (is_done and not self.replays and self._is_in_a_batch(key, earlier)):
                return Published(key, earlier) if is_done else None
        return None

    def _is_in_a_batch(self, key: ManifestKey, generation: int) -> bool:
        """Whether a batch read so far has a generation; batches are searched only once."""
        published, last = Published(key, generation), self.batches.recorded()
        since = self.ledger.outcome_of(key, generation).decided_at - _SEARCHED_BEFORE
        after = self._in_vain.get(published, 0)
        number = self.batches.number_of(key, generation, since=since, after=after, searches_all=True)
        if number is None:
            self._in_vain[published] = last
        return number is not None and number <= self._read

    def finish(self, done: Collection[Published]) -> None:
        """Drop the batches whose manifests are all done: those given here, or done by the ledger."""
        first = self._finished or 0
        upto = first
        while upto < self._read and self._is_finished(upto + 1, done):
            upto += 1
            self._forget(upto)
        if upto > first:
            self._finished = upto
            self.batches.note_finished(upto)

    def _is_finished(self, number: int, done: Collection[Published]) -> bool:
        left = self._left[number]
        while left:
            last = Published(left[-1].key, left[-1].generation)
            is_held = number in self._refused and self.batches.refused.is_held(*last)
            if last not in done and not is_held and not self.ledger.is_done(last.key, last.generation):
                return False
            left.pop()
        return True

    def _forget(self, number: int) -> None:
        del self._left[number]
        is_refused = number in self._refused
        self._refused.discard(number)
        for each in self._members.pop(number):
            if is_refused:
                self._limits.pop(Published(each.key, each.generation), None)
            elif self._generations.get(each.manifest_id) == each.generation:
                del self._generations[each.manifest_id]

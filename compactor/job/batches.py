"""Works on manifests in threads, several at once. No manifest waits for another one of its batch, or stops it."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from threading import Condition
from types import MappingProxyType
from typing import TypeVar

from compactor.core.errors import CompactorError, EngineLost, OperatorError, StuckError
from compactor.core.layout import id_from_name
from compactor.core.ports import Clock
from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import share_of
from compactor.job.delivery.shared_slots import Begun, StreamSlots
from compactor.job.delivery.work_queue import Work, WorkQueue
from compactor.job.recovery import Opened
from compactor.job.shards import Share, WholeShare
from compactor.job.steps.attempt_review import AttemptReviewer
from compactor.job.steps.compaction import ManifestCompactor
from compactor.job.steps.intake import Delivery, Intake
from compactor.job.steps.results import CompactionResult, Ending
from compactor.ledger.ledger import Ledger, LedgerState
from compactor.telemetry.logs import log_event

INTAKE_THREADS = 8

WAITING_MANIFESTS = 1_000
WAITING_FILES = 20_000
"""First attempts are taken in ahead of their turn, up to so many manifests, and to so many files for memory's sake."""

_ROOM_CHECK_SECONDS = 0.2

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Postponed:
    """A manifest whose next attempt is due later.

    Attributes:
        due_at: When; None if the store could not tell.
    """

    delivery: Delivery
    due_at: datetime | None


@dataclass(slots=True)
class BatchResult:
    """The result of a micro-batch, or of one of its manifests that is to be tried again before the batch ends.

    Attributes:
        number: Which batch of this runner it is.
        is_awaited: Whether its caller waits for all of it.
        started_at: When it was taken in.
        ended_at: When the last of its manifests ended, was postponed or got stuck; None before.
        results: One for each manifest that finished.
        failures: The error of each manifest that did not finish, by its id; a retry may help.
        stuck: What is wrong with each manifest that only a person can fix, by its id.
        postponed: The manifests that will be tried again later, by id.
        received: The objects that were taken in, or were gone.
        unreceived: The objects that were not taken in because of a failure, each with the id that their failure has.
        elsewhere: The objects whose manifests a living run of another shard works on, each with the id.
    """

    number: int = 0
    is_awaited: bool = False
    started_at: datetime | None = None
    ended_at: datetime | None = None
    results: list[CompactionResult] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    stuck: dict[str, StuckError] = field(default_factory=dict)
    postponed: dict[str, Postponed] = field(default_factory=dict)
    received: set[str] = field(default_factory=set)
    unreceived: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long it took; 0 before its end."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return (self.ended_at - self.started_at).total_seconds()


class BatchRunner:
    """Compacts manifests.

    Args:
        intake: Receives the objects.
        ledger: Knows the accepted manifests.
        compactor: Works on one manifest.
        reviewer: Decides when a manifest is tried again, and beside what.
        clock: Tells the time.
        queue: The manifests that wait or are in flight.
        shared: The slots that the queue shares with those of other streams; None if it has its slots for itself.
        share: The manifests that this run takes. Those of others are forgotten when it is their turn.
        on_result: Called with the result of each manifest that finished.
        is_held: Whether no manifest may be begun now; `release` is called when that is over.
    """

    def __init__(
        self,
        *,
        intake: Intake,
        ledger: Ledger,
        compactor: ManifestCompactor,
        reviewer: AttemptReviewer,
        clock: Clock,
        queue: WorkQueue,
        shared: StreamSlots | None = None,
        share: Share | None = None,
        on_result: Callable[[CompactionResult], None] = lambda _: None,
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        self.intake = intake
        self.ledger = ledger
        self.compactor = compactor
        self.on_result = on_result
        self._is_held = is_held
        self._reviewer = reviewer
        self._clock = clock
        self._queue = queue
        self._shared = shared
        self._share = share or WholeShare()
        self._changed = Condition()
        self._pool = ThreadPoolExecutor(queue.slots, thread_name_prefix="manifest")
        self._numbers = count(1)
        self._left: dict[int, int] = {}
        self._batches: dict[int, BatchResult] = {}
        self._ended: deque[BatchResult] = deque()
        self._closed = False
        self._halted = False
        self._final_error: BaseException | None = None
        if shared is not None:
            shared.join(self)

    def run(self, uris: Iterable[str]) -> BatchResult:
        """Take in and compact the manifests at these URIs now, and wait. Repeated URIs and manifests count once.

        A failure of one manifest is kept in the result while the others go on.

        Raises:
            OperatorError: A person must act. Manifests in flight were finished, others were not begun.
            EngineLost: The engine is gone.
        """
        return self._awaited(partial(self._received, uris))

    def resume(self, manifest_ids: Iterable[str]) -> BatchResult:
        """Resume open manifests now, and wait for them; see `run`."""
        return self._awaited(partial(self._resumed, list(manifest_ids)))

    def begin(self, uris: Iterable[str], *, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Take in manifests, and return once there is room for more; `take_ended` returns their results.

        Manifests that are worked on already are left out. Those whose next attempt is due later are postponed.

        Args:
            uris: The objects.
            is_stopping: Asked while there is no room; if true, this call returns.
        """
        self._begin(partial(self._received, uris), postpones=True)
        with self._changed:
            while self._is_full() and not is_stopping():
                self._changed.wait(_ROOM_CHECK_SECONDS)

    def begin_resuming(self, opened: Sequence[Opened]) -> None:
        """Resume open manifests beside all others; see `begin`. Does not wait for room."""
        known = {each.manifest_id: each.found for each in opened if each.found is not None}
        self._begin(partial(self._found, opened), postpones=True, known=known)

    def be_cautious(self) -> None:
        """Begin with one manifest at a time, because a driver died; see `WorkQueue`."""
        with self._changed:
            self._queue.be_cautious()

    def begin_again(self, deliveries: Collection[Delivery]) -> None:
        """Try postponed manifests again; see `begin`. Does not wait for room."""
        if deliveries:
            self._begin(lambda _: list(deliveries))

    def begin_receiving_again(self, uris: Collection[str]) -> None:
        """Take in objects that were not taken in before; see `begin`. Does not wait for room."""
        if uris:
            self._begin(partial(self._received, uris), postpones=True)

    def take_ended(self) -> list[BatchResult]:
        """Return the batches that ended since the last call.

        Raises:
            OperatorError: A person must act.
            EngineLost: The engine is gone.
        """
        self._check()
        return [self._ended.popleft() for _ in range(len(self._ended))]

    def is_idle(self) -> bool:
        """Return whether every batch has ended and its result was taken."""
        with self._changed:
            return not self._batches and not self._ended

    def has_room(self) -> bool:
        """Return whether `begin` would not wait."""
        with self._changed:
            return not self._is_full()

    def known_uris(self) -> frozenset[str]:
        """Return the objects whose manifests wait or are in flight."""
        with self._changed:
            return self._queue.uris

    def record_failures(self) -> int:
        """Record the failures that the store did not accept before; return how many it still does not accept."""
        return self.compactor.failures.record()

    def release(self) -> None:
        """Begin what may begin, after manifests were held."""
        with self._changed:
            self._dispatch()
        self._deal()

    def halt(self) -> None:
        """Begin no other manifest. Takes no lock, so that a signal handler may call it."""
        self._halted = True
        self.compactor.failures.is_stopping = True

    def close(self) -> None:
        """Begin no other manifest, and wait for those in flight."""
        with self._changed:
            self._closed = True
            for work in self._queue.drop_waiting():
                self._leave(work.batch)
        self._pool.shutdown(wait=True)

    def _awaited(self, take_in: Callable[[BatchResult], list[Delivery]]) -> BatchResult:
        batch = self._begin(take_in, is_awaited=True)
        with self._changed:
            while batch.ended_at is None and (self._final_error is None or self._queue.in_flight):
                self._changed.wait()
        self._check()
        self._ended.remove(batch)
        return batch

    def _check(self) -> None:
        if self._final_error is not None:
            raise self._final_error

    def _is_full(self) -> bool:
        # What is tried again is not counted: it would keep the stream from delivering what nothing is wrong with.
        queue = self._queue
        streams = len(self._shared.shared.weights) if self._shared else 1  # memory is for all of them
        is_ahead = queue.first_attempts >= WAITING_MANIFESTS // streams or queue.files >= WAITING_FILES // streams
        is_full = is_ahead and queue.first_attempts >= queue.slots
        return is_full and not self._closed and self._final_error is None

    def _begin(
        self,
        take_in: Callable[[BatchResult], list[Delivery]],
        *,
        postpones: bool = False,
        is_awaited: bool = False,
        known: Mapping[str, LedgerState] = MappingProxyType({}),
    ) -> BatchResult:
        batch = BatchResult(next(self._numbers), is_awaited, self._clock.now())
        works = self._works(take_in(batch), batch, postpones=postpones, known=known)
        if is_awaited and len({work.manifest_id for work in works}) == 1:  # nothing else will come
            works = [replace(work, lane=Lane.ISOLATED) for work in works]
        with self._changed:
            added = [] if self._closed else [work for work in works if self._queue.add(work)]
            self._batches[batch.number], self._left[batch.number] = batch, len(added) + 1
            self._dispatch()
            self._leave(batch.number)
        self._deal()
        return batch

    def _received(self, uris: Iterable[str], batch: BatchResult) -> list[Delivery]:
        # The id inside is not known yet; most manifests are named after their id.
        def delivery(uri: str) -> Delivery | None:
            found = _tried(partial(self.intake.receive, uri), id_from_name(uri), batch)
            if found is None and (id_from_name(uri) in batch.failures or id_from_name(uri) in batch.stuck):
                batch.unreceived[uri] = id_from_name(uri)
            else:
                batch.received.add(uri)
            return found

        return self._each(delivery, dict.fromkeys(uris))

    def _resumed(self, manifest_ids: Iterable[str], batch: BatchResult) -> list[Delivery]:
        def delivery(manifest_id: str) -> Delivery | None:
            accepted = _tried(partial(self.ledger.accepted, manifest_id), manifest_id, batch)
            return Delivery(accepted.source_uri, accepted.digest, accepted) if accepted is not None else None

        return self._each(delivery, manifest_ids)

    def _found(self, opened: Sequence[Opened], batch: BatchResult) -> list[Delivery]:
        unread = [each.manifest_id for each in opened if each.accepted is None]
        read = [each.accepted for each in opened if each.accepted is not None]
        deliveries = [Delivery(accepted.source_uri, accepted.digest, accepted) for accepted in read]
        return [*deliveries, *self._resumed(unread, batch)]

    def _works(
        self, deliveries: Sequence[Delivery], batch: BatchResult, *, postpones: bool, known: Mapping[str, LedgerState]
    ) -> list[Work]:
        def work(delivery: Delivery) -> Work | None:
            accepted = delivery.accepted
            share = share_of(accepted.manifest, self.intake.allowed_prefixes)
            if delivery.refusal is not None:
                return Work(delivery, Lane.FRESH, batch.number, share=share)
            found = known.get(accepted.manifest_id)
            review = _tried(partial(self._reviewer.review_of, accepted, found), accepted.manifest_id, batch)
            if review is None:
                if accepted.manifest_id in batch.failures:
                    batch.postponed[accepted.manifest_id] = Postponed(delivery, None)
                return None
            if review.is_failing:
                self.compactor.failures.note_failing(accepted.manifest_id)
            if postpones and review.due_at is not None and review.due_at > self._clock.now():
                batch.postponed[accepted.manifest_id] = Postponed(delivery, review.due_at)
                return None
            return Work(delivery, review.lane, batch.number, review.deaths, share)

        return self._each(work, deliveries)

    def _each(self, work: Callable[[S], T | None], items: Iterable[S]) -> list[T]:
        with ThreadPoolExecutor(INTAKE_THREADS) as pool:
            return [found for found in pool.map(work, items) if found is not None]

    def _dispatch(self) -> None:
        while self._shared is None and (work := self._next()) is not None:
            self._pool.submit(self._work, work)
        self._changed.notify_all()

    def _next(self, others: int = 0) -> Work | None:
        return self._queue.next(others) if self._may_begin else None

    @property
    def _may_begin(self) -> bool:
        return not (self._closed or self._halted or self._is_held()) and self._final_error is None

    def _deal(self) -> None:
        """Begin what may begin among all streams. Not with the lock, because each stream has its own."""
        if self._shared is not None:
            self._shared.deal()

    def begin_one(self, others: int) -> Begun | None:
        """Begin one manifest; see `compactor.job.delivery.shared_slots.Beginner`."""
        with self._changed:
            work = self._next(others)
            if work is None:
                return None
            self._pool.submit(self._work, work)
            self._changed.notify_all()
        return _begun(work)

    def needs_all(self) -> bool:
        """Return whether a manifest waits until nothing else is in flight."""
        with self._changed:
            return self._may_begin and self._queue.needs_all()

    def _work(self, work: Work) -> None:
        batch = self._batches[work.batch]
        try:
            self._compact(work, batch)
        except BaseException as exc:  # noqa: BLE001 - it ends the run, in the thread that waits for it
            with self._changed:
                self._final_error = self._final_error or exc
        with self._changed:
            self._queue.done(work)
            self._end_early(batch, work.manifest_id)  # only now, or the next attempt would find this one in flight
            self._leave(work.batch)
            self._dispatch()
        if self._shared is not None:
            self._shared.ended(_begun(work))
            self._shared.deal()

    def _end_early(self, batch: BatchResult, manifest_id: str) -> None:
        """Return a failed manifest before its batch ends, so that its next attempt does not wait for the others."""
        if batch.is_awaited or manifest_id not in batch.failures:
            return
        part = BatchResult(batch.number, started_at=batch.started_at, ended_at=self._clock.now())
        part.failures[manifest_id] = batch.failures.pop(manifest_id)
        if manifest_id in batch.postponed:
            part.postponed[manifest_id] = batch.postponed.pop(manifest_id)
        self._ended.append(part)

    def _leave(self, number: int) -> None:
        """Count one manifest of a batch less; the last one ends it."""
        self._left[number] -= 1
        if not self._left[number]:
            del self._left[number]
            batch = self._batches.pop(number)
            batch.ended_at = self._clock.now()
            self._ended.append(batch)

    def _compact(self, work: Work, batch: BatchResult) -> None:
        accepted = work.delivery.accepted
        # guard: a manifest that another shard has taken meanwhile is not begun when its turn comes
        if not self._share.is_mine(work.delivery.uri):  # another shard has it since
            return
        result = _tried(partial(self.compactor.compact, work.delivery, alone=work.alone), accepted.manifest_id, batch)
        if result is not None and result.ending is Ending.ELSEWHERE:
            batch.elsewhere[work.delivery.uri] = accepted.manifest_id
        elif result is not None:
            if result.ending in {Ending.COMMITTED, Ending.PLACED}:
                with self._changed:
                    self._queue.note_commit()
            if result.ending is Ending.PLACED:  # its result comes when it is done
                return
            if result.ending is not Ending.ALREADY_DONE:
                self.on_result(result)
            batch.results.append(result)
        elif accepted.manifest_id in batch.failures:
            review = None
            with suppress(CompactorError):
                review = self._reviewer.review_of(accepted)
            batch.postponed[accepted.manifest_id] = Postponed(work.delivery, review.due_at if review else None)


def _begun(work: Work) -> Begun:
    return Begun(work.manifest_id, work.input_bytes, work.alone)


def _tried(work: Callable[[], T], manifest_id: str, batch: BatchResult) -> T | None:
    """Do some work on one manifest. If it fails, note the error and return None, so that the others go on."""
    try:
        return work()
    except (OperatorError, EngineLost):
        raise
    except StuckError as exc:
        log_event("manifest.stuck", manifest_id=manifest_id, error=exc)
        batch.stuck[manifest_id] = exc
        return None
    except Exception as exc:  # noqa: BLE001 - no error of one manifest may stop the others
        log_event("manifest.failed", manifest_id=manifest_id, error=exc)
        batch.failures[manifest_id] = exc
        return None

"""Processes several manifests at once, in threads. Manifests of a batch neither wait for nor stop each other."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from threading import Condition
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from compactor.core.documents.records import Accepted
from compactor.core.errors import CompactorError, EngineLost, OperatorError, StuckError
from compactor.core.layout import id_from_name
from compactor.core.map_ordered import map_ordered
from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import share_of
from compactor.job.lanes import StreamSlots, WorkQueue
from compactor.job.receiving import Intake
from compactor.job.recovery import Opened
from compactor.job.results import FINISHED, Delivery, Ending, Result, Results, result_of
from compactor.job.retries import Retries
from compactor.job.road import ManifestCompactor
from compactor.ledger.ledger import LedgerState
from compactor.telemetry.logs import log_event

if TYPE_CHECKING:
    from compactor.job.table_commits import TableCommits

INTAKE_THREADS = 8

WAITING_MANIFESTS = 1_000
WAITING_FILES = 20_000
"""First attempts are taken in ahead of time, up to this many manifests, and this many files to limit memory."""

_ROOM_CHECK_SECONDS = 0.2

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class Scheduler:
    """Compacts manifests.

    Attributes:
        compactor: Processes one manifest.
        slots: The job's slots, from its stream's view.
        on_result: Called with the result of each finished manifest.
        table: Takes published manifests, and brings them to done; None without a table sink.
    """

    intake: Intake
    compactor: ManifestCompactor
    queue: WorkQueue
    slots: StreamSlots
    postponed: Retries
    on_result: Callable[[Result], None] = lambda _: None
    table: "TableCommits | None" = None
    _changed: Condition = field(default_factory=Condition, init=False)
    _pool: ThreadPoolExecutor = field(init=False)
    _ended: deque[Result] = field(default_factory=deque, init=False)
    _closed: bool = field(default=False, init=False)
    _halted: bool = field(default=False, init=False)
    _final_error: BaseException | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.queue.slots + 1, thread_name_prefix="manifest")  # one in the spare slot
        self.slots.join(self)

    def run(self, uris: Iterable[str]) -> Results:
        """Take in and compact the manifests at these URIs now, and wait. Repeated URIs and manifests count once.

        One manifest's failure is part of the result; the others continue.

        Raises:
            OperatorError: An operator must act. Manifests in flight were finished, others were not started.
            EngineLost: The engine died.
        """
        return self._awaited(self._received(uris))

    def resume(self, manifest_ids: Iterable[str]) -> Results:
        """Resume open manifests now, and wait for them; see `run`."""
        return self._awaited(self._resumed(manifest_ids))

    def take_in(self, uris: Iterable[str]) -> None:
        """Take in manifests, and start them when it is their turn; `take_ended` returns their results.

        Manifests in flight are skipped. Those whose next attempt is due later are postponed.
        """
        self._begin(self._reviewed(self._received(uris), postpones=True))

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> None:
        """Wait until there is room for more, or until the process is stopping."""
        with self._changed:
            while self._is_full() and not is_stopping():
                self._changed.wait(_ROOM_CHECK_SECONDS)

    def begin_resuming(self, opened: Sequence[Opened]) -> None:
        """Resume open manifests alongside all others; see `take_in`."""
        known = {each.manifest_id: each.found for each in opened if each.found is not None}
        read = [_delivery(each.accepted) for each in opened if each.accepted is not None]
        unread = self._resumed(each.manifest_id for each in opened if each.accepted is None)
        self._begin(self._reviewed([*read, *unread], postpones=True, known=known))

    def retry(self) -> None:
        """Start retries that are due."""
        if due := self.postponed.take_due():
            self._begin(self._reviewed(due))
        if uris := self.postponed.take_due_uris():
            self.take_in(uris)

    def be_cautious(self) -> None:
        """Start one manifest at a time, because a driver died; see `WorkQueue`."""
        with self._changed:
            self.queue.be_cautious()

    def take_ended(self) -> Results:
        """Return the results since the last call; manifests to be retried are postponed.

        Raises:
            OperatorError: An operator must act.
            EngineLost: The engine died.
        """
        if self._final_error is not None:
            raise self._final_error
        published = self.table.take_ended() if self.table is not None else []
        for result in published:
            if result.ending in FINISHED:
                self.on_result(result)
        ended = Results((*(self._ended.popleft() for _ in range(len(self._ended))), *published))
        self.postponed.add(ended, self._now())
        return ended

    def is_idle(self) -> bool:
        """Whether nothing waits or is in flight, and all results were taken."""
        with self._changed:
            return not (self.queue or self.queue.in_flight or self._ended)

    def has_room(self) -> bool:
        with self._changed:
            return not self._is_full()

    def known_uris(self) -> frozenset[str]:
        """The objects whose manifests wait or are in flight."""
        with self._changed:
            return self.queue.uris

    def record_failures(self) -> int:
        return self.compactor.failures.record()

    def release(self) -> None:
        """Start pending manifests, after the table had no room."""
        self.slots.job.deal()

    def halt(self) -> None:
        """Start no more manifests. Takes no lock, so a signal handler may call it."""
        self._halted = True
        self.compactor.failures.is_stopping = True

    def close(self) -> None:
        """Start no more manifests, and wait for those in flight."""
        with self._changed:
            self._closed = True
            self.queue.drop_waiting()
        self._pool.shutdown(wait=True)

    def _awaited(self, received: Sequence[Delivery | Result]) -> Results:
        reviewed = self._reviewed(received)
        if len({each.manifest_id for each in reviewed if isinstance(each, Delivery)}) == 1:  # nothing more will come
            reviewed = [replace(each, lane=Lane.ALONE) if isinstance(each, Delivery) else each for each in reviewed]
        self._begin(reviewed)
        with self._changed:
            while self.queue.in_flight or (self.queue and self._may_begin):
                self._changed.wait()
        return self.take_ended()

    def _is_full(self) -> bool:
        # Repeated attempts do not count, or they would keep the stream from delivering sound manifests.
        queue, streams = self.queue, len(self.slots.job.streams)  # all streams share the memory
        is_ahead = queue.first_attempts >= WAITING_MANIFESTS // streams or queue.files >= WAITING_FILES // streams
        is_full = is_ahead and queue.first_attempts >= queue.slots
        return is_full and not self._closed and self._final_error is None

    def _begin(self, reviewed: Sequence[Delivery | Result]) -> None:
        with self._changed:
            self._ended.extend(each for each in reviewed if isinstance(each, Result))
            for each in reviewed:
                if isinstance(each, Delivery) and not self._closed:
                    self.queue.add(each)
            self._changed.notify_all()
        self.slots.job.deal()

    def _received(self, uris: Iterable[str]) -> list[Delivery | Result]:
        def received(uri: str) -> Delivery | Result:
            # The id inside is still unknown; most manifests are named after their id.
            manifest_id = id_from_name(uri)
            found = _tried(partial(self.intake.receive, uri), manifest_id, uri)
            gone = Result(ending=Ending.GONE, manifest_id=manifest_id, uri=uri)
            return gone if found is None else found

        return list(map_ordered(received, dict.fromkeys(uris), threads=INTAKE_THREADS))

    def _resumed(self, manifest_ids: Iterable[str]) -> list[Delivery | Result]:
        def resumed(manifest_id: str) -> Delivery | Result | None:
            accepted = _tried(partial(self.compactor.state.ledger.accepted, manifest_id), manifest_id)
            return _delivery(accepted) if isinstance(accepted, Accepted) else accepted

        return [found for found in map_ordered(resumed, manifest_ids, threads=INTAKE_THREADS) if found is not None]

    def _reviewed(
        self,
        received: Sequence[Delivery | Result],
        *,
        postpones: bool = False,
        known: Mapping[str, LedgerState] = MappingProxyType({}),
    ) -> list[Delivery | Result]:
        """Each delivery with its lane, or its result, if there is one already."""
        now = self._now()

        def reviewed(each: Delivery | Result) -> Delivery | Result:
            if isinstance(each, Result):
                return each
            accepted = each.accepted
            delivery = replace(
                each, since=now, share=share_of(accepted.manifest, self.intake.allowed_prefixes), lane=Lane.FRESH
            )
            if delivery.refusal is not None:
                return delivery
            work = partial(self.compactor.reviewer.review_of, accepted, known.get(accepted.manifest_id))
            review = _tried(work, accepted.manifest_id, delivery.uri, delivery)
            if isinstance(review, Result):
                return review
            if review.is_failing:
                self.compactor.failures.note_failing(accepted.manifest_id)
            if postpones and review.due_at is not None and review.due_at > self._now():
                return replace(result_of(delivery, Ending.NOT_DUE), due_at=review.due_at)
            return replace(delivery, lane=review.lane)

        return list(map_ordered(reviewed, received, threads=INTAKE_THREADS))

    def _now(self) -> datetime:
        return self.compactor.state.clock.now()

    @property
    def _may_begin(self) -> bool:
        is_held = self.table is not None and self.table.is_full()
        return not (self._closed or self._halted or is_held) and self._final_error is None

    def begin_one(self, others: int) -> Delivery | None:
        """See `compactor.job.lanes.Beginner`."""
        return self._begin_next(partial(self.queue.next, others))

    def begin_spare(self) -> Delivery | None:
        """See `compactor.job.lanes.Beginner`."""
        return self._begin_next(self.queue.next_spare)

    def _begin_next(self, next_of: Callable[[], Delivery | None]) -> Delivery | None:
        with self._changed:
            delivery = next_of() if self._may_begin else None
            if delivery is not None:
                self._pool.submit(self._work, delivery)
                self._changed.notify_all()
        return delivery

    def needs_all(self) -> bool:
        with self._changed:
            return self._may_begin and self.queue.needs_all()

    def _work(self, delivery: Delivery) -> None:
        result = None
        try:
            result = self._compacted(delivery)
        except BaseException as exc:  # noqa: BLE001 - it ends the run, in the thread that waits for it
            self._final_error = self._final_error or exc
        self.slots.ended(delivery)  # first, or it would take a second delivery of the manifest for this one
        with self._changed:
            self.queue.done(delivery)
            if result is not None:  # only now, or the next attempt would find this one in flight
                self._ended.append(result)
            self._changed.notify_all()
        self.slots.job.deal()

    def _compacted(self, delivery: Delivery) -> Result | None:
        """A manifest's result; None if the table brings it to done."""
        # guard: a manifest that a different shard took is not started
        if not self.compactor.share.is_mine(delivery.uri):
            return result_of(delivery, Ending.GONE)
        if self.table is not None and delivery.manifest_id in self.table:
            return None
        manifest_id = delivery.manifest_id
        result = _tried(partial(self.compactor.compact, delivery), manifest_id, delivery.uri, delivery)
        if result.ending is Ending.FAILED:
            with suppress(CompactorError):
                return replace(result, due_at=self.compactor.reviewer.review_of(delivery.accepted).due_at)
        if result.ending in {Ending.COMMITTED, Ending.PUBLISHED}:
            with self._changed:
                self.queue.note_commit()
        if result.ending is Ending.PUBLISHED and self.table is not None:
            self.table.take(result)
            return None
        if result.ending in {Ending.COMMITTED, Ending.DEAD_LETTERED}:
            self.on_result(result)
        return result


def _delivery(accepted: Accepted) -> Delivery:
    return Delivery(accepted.source_uri, accepted.digest, accepted)


def _tried(work: Callable[[], T], manifest_id: str, uri: str = "", delivery: Delivery | None = None) -> T | Result:
    """Do some work on one manifest. An error becomes its result, so that the others continue."""
    try:
        return work()
    except (OperatorError, EngineLost):
        raise
    except StuckError as exc:
        log_event("manifest.stuck", manifest_id=manifest_id, error=exc)
        return Result(ending=Ending.STUCK, manifest_id=manifest_id, uri=uri, delivery=delivery, error=exc)
    except Exception as exc:  # noqa: BLE001 - no error of one manifest may stop the others
        log_event("manifest.failed", manifest_id=manifest_id, error=exc)
        return Result(ending=Ending.FAILED, manifest_id=manifest_id, uri=uri, delivery=delivery, error=exc)

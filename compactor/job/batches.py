"""Works through the manifests of one micro-batch: several at once, suspects alone. One failure stops no other."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TypeVar

from compactor.core.attempts import is_suspect
from compactor.core.errors import EngineLost, OperatorError, StuckError
from compactor.core.layout import id_from_name
from compactor.job.compaction import CompactionResult, Ending, ManifestCompactor
from compactor.job.intake import Delivery, Intake
from compactor.ledger.ledger import Ledger
from compactor.telemetry.logs import log_event

INTAKE_THREADS = 8

T = TypeVar("T")


@dataclass(slots=True)
class BatchResult:
    """The result of a micro-batch.

    Attributes:
        results: One for each manifest that finished.
        failures: The error of each manifest that did not finish, by its id; a retry may help.
        stuck: What is wrong with each manifest that only a person can fix, by its id.
    """

    results: list[CompactionResult] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    stuck: dict[str, StuckError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRunner:
    """Compacts the manifests of a micro-batch.

    Attributes:
        intake: Receives the objects.
        ledger: Tells which manifests are suspects.
        compactor: Works on one manifest.
        manifests_in_flight: How many at once.
        on_result: Called with the result of each manifest that finished.
    """

    intake: Intake
    ledger: Ledger
    compactor: ManifestCompactor
    manifests_in_flight: int
    on_result: Callable[[CompactionResult], None] = lambda _: None

    def run(self, uris: Iterable[str]) -> BatchResult:
        """Take in and compact the manifests at these URIs. Repeated URIs and repeated manifests count once.

        A failure of one manifest is kept in the result while the others go on.

        Raises:
            OperatorError: A person must act. Manifests in flight were finished, others were not begun.
            EngineLost: The engine is gone.
        """
        batch = BatchResult()
        fresh, suspects = self._sorted(self._received(uris, batch), batch)
        self._run_together(fresh, batch)
        for delivery in suspects:
            self._run_one(delivery, batch, alone=True)
        return batch

    def resume(self, manifest_ids: Iterable[str], *, is_stopping: Callable[[], bool] = lambda: False) -> BatchResult:
        """Resume open manifests, one at a time: each was in flight when a driver died, so it is a suspect.

        Args:
            manifest_ids: The open manifests.
            is_stopping: Asked before each manifest; if true, the rest is left to the next run.

        Raises:
            OperatorError: A person must act.
            EngineLost: The engine is gone.
        """
        batch = BatchResult()
        for manifest_id in manifest_ids:
            if is_stopping():
                break
            accepted = _tried(partial(self.ledger.accepted, manifest_id), manifest_id, batch)
            if accepted is not None:
                self._run_one(Delivery(accepted.source_uri, accepted.digest, accepted), batch, alone=True)
        return batch

    def record_failures(self) -> int:
        """Record the failures that the store did not accept before; return how many it still does not accept."""
        return self.compactor.failures.record()

    def _received(self, uris: Iterable[str], batch: BatchResult) -> list[Delivery]:
        with ThreadPoolExecutor(INTAKE_THREADS) as pool:
            found = pool.map(lambda uri: self._receive(uri, batch), dict.fromkeys(uris))
            return [delivery for delivery in found if delivery is not None]

    def _receive(self, uri: str, batch: BatchResult) -> Delivery | None:
        # The id inside is not known yet; most manifests are named after their id.
        return _tried(lambda: self.intake.receive(uri), id_from_name(uri), batch)

    def _sorted(self, deliveries: Sequence[Delivery], batch: BatchResult) -> tuple[list[Delivery], list[Delivery]]:
        """Return manifests that may run together, and those that must run alone; finish those that need no attempt."""
        fresh: list[Delivery] = []
        suspects: list[Delivery] = []
        seen: set[str] = set()
        repeats: list[Delivery] = []
        for delivery in deliveries:
            accepted = delivery.accepted
            if accepted.manifest_id in seen:
                repeats.append(delivery)
                continue
            seen.add(accepted.manifest_id)
            state = _tried(partial(self.ledger.state, accepted.key), accepted.manifest_id, batch)
            if state is None:
                continue
            if delivery.refusal is not None or state.outcome is not None:
                self._run_one(delivery, batch, alone=False)
            elif is_suspect(state.attempts):
                suspects.append(delivery)
            else:
                fresh.append(delivery)
        # A second object of the same manifest is only deleted, once the first one is done.
        return fresh, suspects + repeats

    def _run_together(self, deliveries: Sequence[Delivery], batch: BatchResult) -> None:
        alone = len(deliveries) == 1 or self.manifests_in_flight == 1
        stopped = Event()

        def run(delivery: Delivery) -> None:
            if stopped.is_set():
                return
            try:
                self._run_one(delivery, batch, alone=alone)
            except (OperatorError, EngineLost):
                stopped.set()
                raise

        with ThreadPoolExecutor(self.manifests_in_flight) as pool:
            for future in [pool.submit(run, delivery) for delivery in deliveries]:
                future.result()

    def _run_one(self, delivery: Delivery, batch: BatchResult, *, alone: bool) -> None:
        compact = partial(self.compactor.compact, delivery, alone=alone)
        result = _tried(compact, delivery.accepted.manifest_id, batch)
        if result is None:
            return
        if result.ending is not Ending.ALREADY_DONE:
            self.on_result(result)
        batch.results.append(result)


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

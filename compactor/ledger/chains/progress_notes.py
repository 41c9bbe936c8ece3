"""Notes of how far planning is: one small record of each topic or stream, which the next one overwrites.

Nothing depends on them. What cannot be written is left out: the next plan writes it anew.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compactor.core.documents.chains.plan_progress import PlanProgress
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.ledger.state import State

P = TypeVar("P", bound=PlanProgress)


@dataclass(frozen=True, slots=True)
class ProgressNote(Generic[P]):
    """The note of one topic or stream.

    Attributes:
        kind: The class of the record.
        uri: Where it is.
    """

    state: State
    kind: type[P]
    uri: str

    def read(self) -> P | None:
        """What was noted last; None if nothing was, or if that cannot be read."""
        with suppress(ObjectNotFound, RecordUnreadable):
            return self.kind.read(self.state.store.read(self.uri), self.uri, "progress")
        return None

    def expected(self) -> P:
        """What was noted last. If nothing was, that a job is to plan it is noted from now on."""
        found = self.read()
        if found is not None:
            return found
        expected = self.kind(run_id="", expected_since=self.state.clock.now())
        self.state.store.create(self.uri, expected.to_json())
        return self.read() or expected

    def write(self, progress: P) -> None:
        """Note how far planning is."""
        with suppress(CompactorError):
            self.state.store.put(self.uri, progress.to_json())

    def write_failure(self, run_id: str, error: str, progress: P | None = None) -> None:
        """Note that a plan failed, and why.

        Args:
            run_id: Of the job.
            error: Why it failed.
            progress: What it did all the same; None if nothing, so that what was noted before stays.
        """
        with suppress(CompactorError):
            now, known = self.state.clock.now(), self.read()
            failures, since = (known.failures, known.failing_since) if known is not None else (0, None)
            faults: dict[str, Any] = {"failures": failures + 1, "failing_since": since or now, "error": error}
            made = progress or known or self.kind(run_id=run_id, expected_since=now)
            self.write(made.model_copy(update={**faults, "run_id": run_id}))

"""Work beside that of a run: in a thread of its own, and at intervals that a restart does not change."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.records import LastCall
from compactor.ledger.housekeeping import last_call
from compactor.ledger.state import State
from compactor.telemetry.error_text import described


@dataclass(slots=True)
class Beside:
    """A thread that nothing of the run waits for, and which ends with the process at any point.

    Attributes:
        name: The name of the thread.
        work: What it does; it raises nothing.
    """

    name: str
    work: Callable[[], None]
    _thread: threading.Thread | None = field(default=None, init=False)

    @property
    def is_at_work(self) -> bool:
        """Whether what was begun has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, unless it is still at work."""
        if not self.is_at_work:
            self._thread = threading.Thread(target=self.work, name=self.name, daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the end of what is at work; for tests."""
        if self._thread is not None:
            self._thread.join()


@dataclass(frozen=True, slots=True)
class LastTime:
    """A small object that records when something last finished, and since when it fails.

    Attributes:
        state: Where it is.
        uri: The object.
        kind: What it holds.
    """

    state: State
    uri: str
    kind: type[LastCall]

    def is_due(self, now: datetime, every_seconds: float) -> bool:
        """Whether an interval has passed. Without a record, or with a damaged one, it begins now.

        A record from the future, of a clock that was wrong, holds things up for one interval at most.
        """
        last = last_call(self.state, self.uri, self.kind)
        if last is None:
            self.finished(now)
            return False
        return abs((now - last.finished_at).total_seconds()) >= every_seconds

    def finished(self, now: datetime) -> None:
        """Record that it has finished."""
        self._overwrite(self.kind(finished_at=now))

    def failed(self, now: datetime, error: BaseException) -> None:
        """Record that it has failed, for `status` to show; it is due as before. What cannot be recorded is left out."""
        with suppress(Exception):
            last = last_call(self.state, self.uri, self.kind) or self.kind(finished_at=now)
            since = min(last.failing_since or now, now)
            changes = {"failing_since": since, "failed_at": now, "error": described(error)}
            self._overwrite(last.model_copy(update=changes))

    def _overwrite(self, last: LastCall) -> None:
        self.state.store.put(self.uri, last.to_json())

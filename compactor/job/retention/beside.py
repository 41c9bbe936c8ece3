"""Work beside that of a run: in a thread of its own, and at intervals that a restart does not change."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.records import LastCleaning
from compactor.core.documents.table_records import LastUpkeep
from compactor.core.errors import ObjectNotFound
from compactor.ledger.state import State


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
    """A small object that records when something last finished.

    Attributes:
        state: Where it is.
        uri: The object.
        kind: What it holds.
    """

    state: State
    uri: str
    kind: type[LastCleaning | LastUpkeep]

    def is_due(self, now: datetime, every_seconds: float) -> bool:
        """Whether an interval has passed. Without a record, or with a damaged one, it begins now.

        A record from the future, of a clock that was wrong, holds things up for one interval at most.
        """
        try:
            last = self.kind.model_validate_json(self.state.store.read(self.uri))
        except (ObjectNotFound, ValueError):
            self.remember(now)
            return False
        return abs((now - last.finished_at).total_seconds()) >= every_seconds

    def remember(self, now: datetime) -> None:
        """Record that it has finished."""
        self.state.store.put(self.uri, self.kind(finished_at=now).model_dump_json().encode())

"""Closes dates beside the work of a run, after the daily clean-up."""

from collections.abc import Callable

from compactor.core.documents.records import LastClosing
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event
from compactor.upkeep.beside import Beside, LastTime


class DailyClosing:
    """Closes dates in a thread of its own: to verify a day takes minutes, and nothing of the run waits for it.

    A small object records when it finished, and since when it fails, for `status` to show.

    Args:
        state: Where that object is.
        close: Closes what has been quiet. It may end with the process at any point.
    """

    def __init__(self, state: State, close: Callable[[], None]) -> None:
        self._state = state
        self._last = LastTime(state, state.layout.last_closing, LastClosing)
        self._close = close
        self._thread = Beside("closing", self._run)

    def start(self) -> None:
        """Begin, unless the closing of the day before is still at work."""
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the closing at work; for tests."""
        self._thread.wait()

    def _run(self) -> None:
        try:
            self._close()
            self._last.finished(self._state.clock.now())
        except Exception as exc:  # noqa: BLE001 - whatever it is, the dates stay open until the next day
            log_event("closing.failed", error=exc)
            self._last.failed(self._state.clock.now(), exc)

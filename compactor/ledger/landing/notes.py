"""Notes of how far landing is: one small record of each log, which the next one overwrites.

Nothing depends on them. What cannot be written is left out: the next landing writes it anew.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compactor.core.documents.landing import LandingProgress
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.core.logs.names import LogName
from compactor.ledger.landing.chains import LogChains
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class LandingNotes:
    """The notes of the logs of a state.

    Attributes:
        run_id: This run. All runs of a job write the same records.
    """

    state: State
    run_id: str = ""

    def landed(self, log: LogName, log_id: str, behind_seconds: float, gaps: int, error: str) -> None:
        """Note what came of a landing.

        Args:
            log: The log.
            log_id: Its id.
            behind_seconds: For how long the oldest record that is not landed may have waited.
            gaps: In how many places landings of this run found that records may be lost.
            error: What kept it from landing more; empty if nothing did.
        """
        progress = LandingProgress(
            run_id=self.run_id,
            seen_at=self.state.clock.now(),
            log_id=log_id,
            behind_seconds=behind_seconds,
            gaps=gaps,
        )
        if error:
            self.failed(log, error, progress)
        else:
            self._keep(log, progress)

    def failed(self, log: LogName, error: str, progress: LandingProgress | None = None) -> None:
        """Note that a landing failed, and why.

        Args:
            log: The log.
            error: Why it failed.
            progress: What it did all the same; None if nothing, so that what was noted before stays.
        """
        with suppress(CompactorError):
            now, known = self.state.clock.now(), self.read(log)
            failures, since = (known.failures, known.failing_since) if known is not None else (0, None)
            faults: dict[str, Any] = {"failures": failures + 1, "failing_since": since or now, "error": error}
            made = progress or known or LandingProgress(run_id=self.run_id, expected_since=now)
            self._keep(log, made.model_copy(update={**faults, "run_id": self.run_id}))

    def read(self, log: LogName) -> LandingProgress | None:
        """What was noted last; None if nothing was, or if that cannot be read."""
        uri = self._uri(log)
        with suppress(ObjectNotFound, RecordUnreadable):
            return LandingProgress.read(self.state.store.read(uri), uri, "progress")
        return None

    def expected(self, log: LogName) -> LandingProgress:
        """What was noted last. If nothing was, that a job is to land the log is noted from now on."""
        found = self.read(log)
        if found is not None:
            return found
        expected = LandingProgress(run_id="", expected_since=self.state.clock.now())
        self.state.store.create(self._uri(log), expected.to_json())
        return self.read(log) or expected

    def noted(self, log: LogName) -> LandingProgress | None:
        """As `read`; None also if the store fails."""
        with suppress(CompactorError):
            return self.read(log)
        return None

    def landings(self, log: LogName) -> frozenset[str]:
        """What objects are being landed for, as planners mark it: it changes while one is at work."""
        with suppress(CompactorError):
            chains = LogChains(self.state)
            folders = [chains.landing_folder(log, each) for each in chains.log_ids(log)]
            return frozenset(info.uri for folder in folders for info in self.state.store.list(folder))
        return frozenset()

    def _keep(self, log: LogName, progress: LandingProgress) -> None:
        with suppress(CompactorError):
            self.state.store.put(self._uri(log), progress.to_json())

    def _uri(self, log: LogName) -> str:
        return self.state.layout.landing_progress(log.scheme, log.path)

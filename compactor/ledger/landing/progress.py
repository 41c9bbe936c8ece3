"""The progress of landing: one small record per log, overwritten by the next one, for display.

Nothing depends on it. A record that cannot be written is skipped: the next landing writes it again. Logs are not
queried.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.landing import LandingProgress
from compactor.core.errors import CompactorError
from compactor.core.logs.names import LogName
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.state import State


def progress_of(state: State, log: LogName) -> LandingProgress | None:
    """The latest note on a log; None if there is none, or if it is unreadable."""
    return LandingProgress.find_readable(state.store, _uri(state, log))


@dataclass(frozen=True, slots=True)
class LandingNotes:
    """Writes the notes of one run. All runs of a job write the same records."""

    state: State
    run_id: str
    _last: dict[str, LandingProgress] = field(default_factory=dict, init=False)  # by log

    def known(self, log: LogName) -> LandingProgress:
        """The latest note, but with only this run's gaps; this run's own note if the stored one is unreadable."""
        found = self._last.get(str(log))
        with suppress(CompactorError):
            found = progress_of(self.state, log) or found
        if found is None:
            return LandingProgress(run_id=self.run_id, expected_since=self.state.clock.now())
        return found if found.run_id == self.run_id else found.model_copy(update={"run_id": self.run_id, "gaps": 0})

    def keep(self, log: LogName, progress: LandingProgress) -> None:
        """Overwrite the note."""
        self._last[str(log)] = progress
        with suppress(CompactorError):
            self.state.store.put(_uri(self.state, log), progress.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSeen:
    """A log that jobs land, and their lag."""

    name: str  # the log, as kafka://cluster/topic or kinesis://source/stream
    seen_at: datetime | None = None  # when a job last landed the log; null if none has
    unseen_seconds: float = 0.0  # how long it has gone without landing, or has waited for its first landing, if known
    behind_seconds: float = 0.0  # the longest wait of a record that was not landed then
    gaps: int = 0  # number of places where the run found records possibly lost to retention
    failures: int = 0  # failed or partial landings by jobs since then
    failing_seconds: float = 0.0  # duration of these failures
    error: str = ""  # why the latest one failed; empty if none did
    late_seconds: float = 0.0  # how long a record may wait, or landings may fail, before it needs attention

    @property
    def age_seconds(self) -> float:
        """The longest possible wait of a record that is not landed."""
        return self.behind_seconds + self.unseen_seconds

    @property
    def is_behind(self) -> bool:
        """Whether it needs attention. Records that arrive while nothing is landed are unknown, so time counts too."""
        return max(self.age_seconds, self.failing_seconds) > self.late_seconds

    @property
    def words(self) -> str:
        """Describe what waits, and since when landings fail."""
        if self.seen_at is None:
            waits = "not landed yet"
            waits += f", due for {shown_seconds(self.unseen_seconds)}" if self.is_behind else ""
        else:
            behind = f"up to {shown_seconds(self.behind_seconds)} behind" if self.behind_seconds else "all landed"
            waits = f"{behind}, as of {shown_seconds(self.unseen_seconds)} ago"
        failed = f"{count(self.failures, 'landing')} failed in a row, for {shown_seconds(self.failing_seconds)}"
        lost = f"; {count(self.gaps, 'gap')} found by this run: `compactor verify` lists the losses"
        return waits + (lost if self.gaps else "") + (f"; {failed}" if self.failures else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWatch:
    """Watches the logs of one state.

    Attributes:
        logs: Those that its jobs land.
        late_seconds: How long a record may wait, or landings may fail, before it needs attention.
        may_note: Whether to note that a log is due for landing if no job has noted anything about it.
    """

    state: State
    logs: Sequence[LogName]
    late_seconds: float
    may_note: bool = False

    def seen(self, now: datetime) -> tuple[LogSeen, ...]:
        """How far landing lags behind each log."""
        return tuple(self._seen(log, now) for log in self.logs)

    def _seen(self, log: LogName, now: datetime) -> LogSeen:
        note = progress_of(self.state, log)
        if note is None:
            note = LandingProgress(run_id="", expected_since=self.state.clock.now() if self.may_note else None)
            if self.may_note:
                self.state.store.create(_uri(self.state, log), note.to_json())
        unseen_since = note.seen_at or note.expected_since or now
        return LogSeen(
            name=str(log),
            seen_at=note.seen_at,
            unseen_seconds=max((now - unseen_since).total_seconds(), 0.0),
            behind_seconds=note.behind_seconds,
            gaps=note.gaps,
            failures=note.failures,
            failing_seconds=max((now - note.failing_since).total_seconds(), 0.0) if note.failing_since else 0.0,
            error=note.error,
            late_seconds=self.late_seconds,
        )


def _uri(state: State, log: LogName) -> str:
    return state.layout.landing_progress(log.scheme, log.path)

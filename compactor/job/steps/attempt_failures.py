"""Records the failed attempts of this run, and decides which may count against their manifests."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.records import Attempt, AttemptFailure
from compactor.core.errors import (
    CompactorError,
    EngineFailed,
    InputRefused,
    OperatorError,
    ScratchFull,
    StagingError,
    StuckError,
    TryAgainError,
)
from compactor.core.layout import ManifestKey
from compactor.ledger.ledger import Ledger
from compactor.telemetry.error_text import described

COMMON_FAILURES = 3
"""If so many manifests failed one after the other and none was committed since, the environment may be to blame."""

_ERROR_MAX_CHARACTERS = 2_000  # an error is truncated in its record; its beginning says what happened


@dataclass(slots=True, kw_only=True)
class AttemptFailures:
    """Records how attempts failed. Later runs take an attempt without such a record for a death.

    Attributes:
        ledger: Takes the records.
        now: Tells the time.
        is_engine_healthy: Whether the engine still works. If not, no manifest is to blame.
        in_flight: The ids of the manifests that are being worked on.
        is_stopping: Whether this process was asked to end.
    """

    ledger: Ledger
    now: Callable[[], datetime]
    is_engine_healthy: Callable[[], bool]
    in_flight: Collection[str] = ()
    is_stopping: bool = False
    _unrecorded: dict[tuple[str, int], tuple[ManifestKey, AttemptFailure]] = field(default_factory=dict)
    _failed_since_commit: set[str] = field(default_factory=set)

    def note_commit(self) -> None:
        """Note that a manifest got through: the environment works."""
        self._failed_since_commit = set()

    def note_failing(self, manifest_id: str) -> None:
        """Note a manifest that failed in an earlier run, with no commit since."""
        self._failed_since_commit.add(manifest_id)

    def add(self, key: ManifestKey, attempt: Attempt, error: Exception, *, passing: bool = False) -> None:
        """Keep a failure until it is recorded. Makes no call to the store, because the store may be what failed.

        Args:
            key: The manifest.
            attempt: The attempt that failed.
            error: Why.
            passing: Whether the manifest is not to blame, whatever the error is.
        """
        scratch = isinstance(error, ScratchFull)
        # What asked this process to end may have ended any call, and the last one to fail has nothing beside it.
        passing = passing or (self.is_stopping and not isinstance(error, StagingError))
        passing = passing or (is_passing(error) and not (scratch and attempt.alone)) or self._is_engine_broken(error)
        undecided = not passing and not isinstance(error, StagingError) and self._may_be_common(key.id)
        failure = AttemptFailure(
            manifest_id=key.id,
            number=attempt.number,
            passing=passing or undecided,
            undecided=undecided,
            refused=isinstance(error, InputRefused),
            needs_isolation=scratch,
            error=_described(error),
            failed_at=self.now(),
        )
        self._unrecorded[key.id, attempt.number] = key, failure

    def drop(self, key: ManifestKey, attempt: Attempt) -> None:
        """Forget the failure of an attempt at a manifest that another driver decided."""
        self._unrecorded.pop((key.id, attempt.number), None)

    def record(self) -> int:
        """Write the missing records; return how many the store still does not accept."""
        for place, (key, failure) in list(self._unrecorded.items()):  # other threads may add to it meanwhile
            with suppress(CompactorError):
                self.ledger.fail(key, failure)
                self._unrecorded.pop(place, None)
        return len(self._unrecorded)

    def _is_engine_broken(self, error: Exception) -> bool:
        return not isinstance(error, CompactorError) and not self.is_engine_healthy()

    def _may_be_common(self, manifest_id: str) -> bool:
        """Whether it takes more than this failure to tell the manifest from its environment."""
        self._failed_since_commit.add(manifest_id)
        beside = any(each != manifest_id for each in tuple(self.in_flight))
        return beside or len(self._failed_since_commit) >= COMMON_FAILURES


def is_passing(error: Exception) -> bool:
    """Return whether an error is never the manifest's fault, so that the attempt does not count against it."""
    if isinstance(error, StagingError | InputRefused):
        return False
    return isinstance(error, TryAgainError | OperatorError | StuckError)


def _described(error: Exception) -> str:
    text = described(error, max_characters=_ERROR_MAX_CHARACTERS)
    return f"{type(error).__name__}: {text}" if isinstance(error, CompactorError | EngineFailed) else text

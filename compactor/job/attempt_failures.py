"""Records the failed attempts of this run, and decides which count against their manifests."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from compactor.core.errors import CompactorError, EngineFailed, OperatorError, StagingError, StuckError, TryAgainError
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Attempt
from compactor.ledger.ledger import Ledger
from compactor.telemetry.error_text import described

COMMON_FAILURES = 3
"""If so many manifests fail with unforeseen errors and none is committed, the environment or the code is to blame."""

_ERROR_MAX_CHARACTERS = 2_000  # an error is truncated in its record; its beginning says what happened


@dataclass(frozen=True, slots=True)
class _Failure:
    """How an attempt ended."""

    key: ManifestKey
    attempt: Attempt
    error: str
    passing: bool


class AttemptFailures:
    """Records how attempts failed. Later runs take an attempt without such a record for a death.

    Args:
        ledger: Takes the records.
        is_engine_healthy: Whether the engine still works. If not, no manifest is to blame.
    """

    def __init__(self, ledger: Ledger, is_engine_healthy: Callable[[], bool]) -> None:
        self.has_committed = False
        self._ledger = ledger
        self._is_engine_healthy = is_engine_healthy
        self._unrecorded: dict[tuple[str, int], _Failure] = {}
        self._failed_unforeseen: set[str] = set()

    def add(self, key: ManifestKey, attempt: Attempt, error: Exception) -> None:
        """Keep a failure until it is recorded. Makes no call to the store, because the store may be what failed."""
        passing = self._is_passing(key.id, error)
        self._unrecorded[key.id, attempt.number] = _Failure(key, attempt, _described(error), passing)

    def drop(self, key: ManifestKey, attempt: Attempt) -> None:
        """Forget the failure of an attempt at a manifest that another driver decided."""
        self._unrecorded.pop((key.id, attempt.number), None)

    def record(self) -> int:
        """Write the missing records; return how many the store still does not accept."""
        for each in list(self._unrecorded.values()):  # other threads may add to it meanwhile
            with suppress(CompactorError):
                self._ledger.fail(each.key, each.attempt, error=each.error, passing=each.passing)
                self.drop(each.key, each.attempt)
        return len(self._unrecorded)

    def _is_passing(self, manifest_id: str, error: Exception) -> bool:
        if isinstance(error, CompactorError):
            return is_passing(error)
        self._failed_unforeseen.add(manifest_id)
        is_common = len(self._failed_unforeseen) >= COMMON_FAILURES and not self.has_committed
        return is_common or not self._is_engine_healthy()


def is_passing(error: Exception) -> bool:
    """Return whether an error is not the manifest's fault, so that the attempt does not count against it."""
    return isinstance(error, TryAgainError | OperatorError | StuckError) and not isinstance(error, StagingError)


def _described(error: Exception) -> str:
    text = described(error, max_characters=_ERROR_MAX_CHARACTERS)
    return f"{type(error).__name__}: {text}" if isinstance(error, CompactorError | EngineFailed) else text

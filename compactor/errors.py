"""The errors of the compactor, grouped by what has to happen next.

    CompactorError
    ├── InputError            the input is wrong: set it aside with its reason, go on
    │   ├── ManifestError         a manifest that cannot be accepted
    │   └── FileError             one input file that cannot be read to its end
    ├── TryAgainError         passing trouble: back off and repeat
    │   ├── StoreUnavailable      throttling, time-outs, 5xx
    │   ├── ObjectNotFound        an object that was expected is not there
    │   ├── ObjectChanged         an object is no longer the version that was asked for
    │   └── StagingError          a staged result that does not add up, so it was not committed
    ├── StuckError            a person must put one manifest right: leave it as it is, go on with the others
    │   ├── RecordUnreadable      a record of the ledger that cannot be read
    │   └── StagingLost           staged files of a commit that are gone, and were not published
    ├── EngineLost            the engine died with all that was in flight: end this process, another one goes on
    └── OperatorError         a person must act: stop and say so
        ├── SettingsError         every fault of the settings at once
        └── AccessError           permission denied, or a bucket that does not exist

What none of these covers is a bug, or trouble nobody foresaw. It counts as a failed attempt of its manifest.
"""

from collections.abc import Sequence


class CompactorError(Exception):
    """Root of all errors raised on purpose."""


class InputError(CompactorError):
    """The input is wrong. Set it aside with its reason and go on."""


class ManifestError(InputError):
    """A manifest that cannot be accepted.

    Args:
        reason: One word of `compactor.manifest.REASONS`, for counting and redriving.
        message: What is wrong, where, and what was expected.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    def __reduce__(self) -> tuple[type["ManifestError"], tuple[str, str]]:
        return type(self), (self.reason, self.message)


class FileError(InputError):
    """One input file that cannot be read to its end.

    Args:
        status: The status that the file gets in the audit: one of `compactor.records.FileStatus`.
        message: What is wrong, where, and what was expected.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def __reduce__(self) -> tuple[type["FileError"], tuple[str, str]]:
        return type(self), (self.status, self.message)


class TryAgainError(CompactorError):
    """Passing trouble. Back off and repeat; nothing has been lost."""


class StoreUnavailable(TryAgainError):
    """The store throttled, timed out or answered 5xx, also after the client's own retries."""


class ObjectNotFound(TryAgainError):
    """There is no object at this URI."""


class ObjectChanged(TryAgainError):
    """The object at this URI is not the version that was asked for."""


class StagingError(TryAgainError):
    """What an attempt staged does not add up. It was not committed; the attempt counts."""


class StuckError(CompactorError):
    """A person must put one manifest right. It stays as it is; all others go on."""


class RecordUnreadable(StuckError):
    """A record of the ledger that is damaged, or of a release that this one does not understand."""


class StagingLost(StuckError):
    """A committed manifest whose staged files are gone before they were published."""


class EngineLost(CompactorError):
    """The engine died under this process. Attempts in flight end without a word, as if the process had died too."""


class OperatorError(CompactorError):
    """A person must act before it can work."""


class SettingsError(OperatorError):
    """Settings that cannot be used.

    Args:
        faults: One line a fault, each with the key, the value and what was expected.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[tuple[str, ...]]]:
        return type(self), (self.faults,)


class AccessError(OperatorError):
    """Permission denied, credentials missing, or a bucket that does not exist."""

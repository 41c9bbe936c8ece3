"""The errors of the compactor, grouped by the next action.

    CompactorError
    ├── InputError            the input is wrong: quarantine it with its reason, go on
    │   ├── ManifestError         a manifest that cannot be accepted
    │   └── FileError             one input file that cannot be read to its end
    ├── TryAgainError         passing trouble: back off and repeat
    │   ├── StoreUnavailable      throttling, time-outs, 5xx
    │   │   └── ScratchFull           no space left on the local disk
    │   ├── InputRefused          the store refuses all input of one manifest
    │   ├── ObjectNotFound        an object that was expected is not there
    │   ├── ObjectChanged         an object is no longer the requested version
    │   ├── TableConflict         the table has changed since its head was read, and nothing was done to it
    │   ├── TableCommitUnknown    a change of the table without an answer that tells what came of it
    │   └── StagingError          a staged result that does not add up, so it was not committed
    ├── StuckError            a person must fix one manifest: leave it as it is, go on with the others
    │   ├── RecordUnreadable      a record of the ledger that cannot be read
    │   ├── StagingLost           staged files of a commit that are gone, and were not published
    │   └── TableHeldBack         a manifest whose files the table's catalog refuses for ever
    ├── EngineLost            the engine died with everything in flight: end this process, another one goes on
    └── OperatorError         a person must act: stop and say so
        ├── ExtraMissing          packages that this work needs are not installed
        ├── InventoryError        an S3 Inventory that cannot be planned from
        ├── SettingsError         every fault of the settings at once
        ├── TableRefused          one change that the table's catalog refuses; it may take others
        └── AccessError           permission denied, or a bucket that does not exist
            ├── CredentialsRefused    credentials that are not valid now
            │   └── CredentialsMissing    no credentials, or a profile that is not there
            └── LinkRefused           a symbolic link that leads out of the folders of the input

Any other error is a bug or an unforeseen failure; an engine raises such a failure as `EngineFailed`. It counts as a
failed attempt of its manifest.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    DONE = 0
    FAILED = 1  # try again, or see the log
    WRONG_USAGE = 2  # of the command, or of the settings
    NEEDS_OPERATOR = 3  # done, but an operator has to act
    INTERRUPTED = 130  # by Ctrl-C; what shells give for SIGINT


class CompactorError(Exception):
    """Root of all errors raised on purpose. No message contains input data.

    Attributes:
        next_move: What the operator should do next. A class without its own value inherits that of its group.
    """

    next_move: ClassVar[str] = "fix what the error names, then run it again"


class InputError(CompactorError):
    """The input is wrong. Quarantine it with its reason and go on."""

    next_move = "fix the input, or have its producer send it again; `compactor redrive`"


class ManifestError(InputError):
    """A manifest that cannot be accepted.

    Args:
        reason: One of `compactor.core.documents.manifest.REASONS`.
        message: What is wrong, where, and what was expected.
    """

    next_move = "deliver a correct manifest under a new name; `compactor redrive` does so for a dead letter"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    def __reduce__(self) -> tuple[type["ManifestError"], tuple[str, str]]:
        return type(self), (self.reason, self.message)


class FileError(InputError):
    """One input file that cannot be read to its end.

    Args:
        status: The status in its file report: one of `compactor.core.documents.records.FileStatus`.
        message: What is wrong, where, and what was expected.
    """

    next_move = "find the file with `compactor trace URI` and fix it; `compactor redrive`"

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def __reduce__(self) -> tuple[type["FileError"], tuple[str, str]]:
        return type(self), (self.status, self.message)


class TryAgainError(CompactorError):
    """Passing trouble. Back off and repeat; nothing has been lost."""

    next_move = "run it again, nothing is lost; if it fails again, fix what the error names"


class StoreUnavailable(TryAgainError):
    """The store throttled, timed out or answered 5xx, also after the client's own retries."""

    next_move = "run it again, nothing is lost; if it fails again, check network, endpoint and free disk space"


class ScratchFull(StoreUnavailable):
    """The local disk of a task is full. Held against a manifest that was alone in flight."""

    next_move = (
        "free disk space, give the workers more, or lower input.max_decompressed_bytes; a manifest that fills the disk "
        "alone becomes a dead letter"
    )


class InputRefused(TryAgainError):
    """The store refuses to give any of a manifest's files. Held against the manifest if others get through."""

    next_move = (
        "give the job the right to read the files, or have their producer send them again; it tries again itself"
    )


class ObjectNotFound(TryAgainError):
    """There is no object at this URI."""

    next_move = "correct the place in the command or the settings, then run it again"


class ObjectChanged(TryAgainError):
    """The object at this URI is not the requested version."""

    next_move = "run it again: it takes the current version"


class TableConflict(TryAgainError):
    """The table is no longer at the head that the change was made for. Nothing was changed."""

    next_move = "run it again, nothing is lost; another process has changed the table meanwhile"


class TableCommitUnknown(TryAgainError):
    """The catalogue did not tell whether the table was changed. Only its head tells, once it is read again."""

    next_move = "run it again, nothing is lost or doubled; if it fails again, check the catalogue"


class StagingError(TryAgainError):
    """Staged files are missing, damaged or do not add up. Nothing was committed; the attempt counts as failed."""

    next_move = "run it again; if it fails again, keep the manifest and report a bug"


class StuckError(CompactorError):
    """A person must fix one manifest. It stays as it is; all others go on."""

    next_move = "fix what the error names, then run it again; other manifests continue"


class RecordUnreadable(StuckError):
    """A ledger record is damaged."""

    next_move = "restore an earlier version of the object, then run it again"


class StagingLost(StuckError):
    """The staged files of a committed manifest were deleted before they were published."""

    next_move = "`compactor rebuild` with the id of the manifest; or restore the staged files that the error names"


class TableHeldBack(StuckError):
    """The catalogue refuses the files of a manifest, alone and again: it is left out of the table, and not done."""

    next_move = (
        "fix what the error names, then `compactor table rebuild` takes it in again; or `compactor rebuild` with its id"
        " writes its files anew"
    )


class EngineLost(CompactorError):
    """The engine died. Attempts in flight get no recorded end, as if this process had died too."""

    next_move = "run it again: it continues; if it dies again, give Spark more memory or run fewer manifests at once"


class OperatorError(CompactorError):
    """A person must act before the command or job can work."""

    next_move = "fix what the error names, then run it again"


class SettingsError(OperatorError):
    """Settings that cannot be used.

    Args:
        faults: One line per fault: the key, the value, and what was expected.
    """

    next_move = "fix every fault, then run it again"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)

    def __reduce__(self) -> tuple[type["SettingsError"], tuple[tuple[str, ...]]]:
        return type(self), (self.faults,)


class ExtraMissing(OperatorError):
    """Packages that this work needs, and most work does not, are not installed."""

    next_move = "run the command that the error names in the Python of the compactor, then run it again"


class InventoryError(OperatorError):
    """An S3 Inventory that is damaged, incomplete, or of other objects. Nothing was planned from it."""

    next_move = "name the manifest.json of a complete inventory with the fields that planning needs"


class TableRefused(OperatorError):
    """The catalogue, or its client that reads the files, refuses one change of the table. Nothing was changed by it."""

    next_move = "fix what the error names; if only some manifests are to blame, the job holds these back and goes on"


class AccessError(OperatorError):
    """Permission denied, credentials missing, or a bucket that does not exist."""

    next_move = "correct the place, or get permission or credentials; then run it again"


class CredentialsRefused(AccessError):
    """The credentials are not valid now, whatever is accessed."""

    next_move = "renew the credentials, then run it again"


class CredentialsMissing(CredentialsRefused):
    """There are no credentials. The message says what helps."""

    next_move = "set AWS_PROFILE or run `aws sso login`, then run it again; a job on AWS needs a role"


class LinkRefused(AccessError):
    """A symbolic link leads out of the folders that input may be in."""

    next_move = "replace the link by the file, or name the folder of the file in input.allowed_prefixes"


class EngineFailed(Exception):
    """An engine failed unexpectedly. The message quotes no data. Not a `CompactorError`, because it may be a bug."""

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
    """The exit code of a command."""

    DONE = 0
    FAILED = 1  # try again, or see the log
    WRONG_USAGE = 2  # wrong command line or settings
    NEEDS_OPERATOR = 3  # done, but needs an operator
    INTERRUPTED = 130  # by Ctrl-C; the shell convention for SIGINT


class CompactorError(Exception):
    """Root of all deliberate errors. No message contains input data.

    Attributes:
        next_move: What the operator should do next. A class without its own value inherits that of its group.
    """

    next_move: ClassVar[str] = "fix the reported cause, then run it again"


class InputError(CompactorError):
    """The input is wrong. Quarantine it with its reason and continue."""

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
    """A transient failure. Back off and retry; no data is lost."""

    next_move = "run it again, no data is lost; if it fails again, fix the reported cause"


class StoreUnavailable(TryAgainError):
    """The store throttled, timed out or answered 5xx despite the client's own retries."""

    next_move = "run it again, no data is lost; if it fails again, check network, endpoint and free disk space"


class ScratchFull(StoreUnavailable):
    """A task's local disk is full. Counts against a manifest that was alone in flight."""

    next_move = (
        "free disk space, give the workers more, or lower input.max_decompressed_bytes; a manifest that fills the "
        "disk on its own becomes a dead letter"
    )


class InputRefused(TryAgainError):
    """The store denies access to all files of a manifest. Counts against the manifest if others succeed."""

    next_move = "give the job permission to read the files, or have the producer send them again; the job retries"


class ObjectNotFound(TryAgainError):
    """There is no object at this URI."""

    next_move = "correct the place in the command or the settings, then run it again"


class ObjectChanged(TryAgainError):
    """The object at this URI is not the requested version."""

    next_move = "run it again: it takes the current version"


class TableConflict(TryAgainError):
    """The table has moved on from the head that the change was based on. Nothing was changed."""

    next_move = "run it again, no data is lost; another process changed the table"


class TableCommitUnknown(TryAgainError):
    """It is unknown whether the catalog changed the table. Read its head again to find out."""

    next_move = "run it again, nothing is lost or duplicated; if it fails again, check the catalog"


class StagingError(TryAgainError):
    """Staged files are missing, damaged or inconsistent. Nothing was committed; the attempt counts as failed."""

    next_move = "run it again; if it fails again, keep the manifest and report a bug"


class StuckError(CompactorError):
    """One manifest needs an operator. It stays as it is; all others continue."""

    next_move = "fix the reported cause, then run it again; other manifests continue"


class RecordUnreadable(StuckError):
    """A ledger record is damaged."""

    next_move = "restore an earlier version of the object (in S3: `compactor restore OBJECT`), then run it again"


class StagingLost(StuckError):
    """The staged files of a committed manifest were deleted before they were published."""

    next_move = "run `compactor rebuild --manifest ID`, or restore the reported staged files"


class TableHeldBack(StuckError):
    """The catalog keeps refusing a manifest's files on their own: it is held back from the table, and not done."""

    next_move = (
        "fix the reported cause, then `compactor table repair` adds it again; or `compactor rebuild --manifest ID` "
        "rewrites its files"
    )


class EngineLost(CompactorError):
    """The engine died. Attempts in flight get no recorded end, as if this process had died too."""

    next_move = "run it again: it resumes; if it dies again, give Spark more memory or run fewer manifests at once"


class OperatorError(CompactorError):
    """The command or job cannot work until an operator acts."""

    next_move = "fix the reported cause, then run it again"


class SettingsError(OperatorError):
    """The settings cannot be used.

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
    """Optional packages that this work needs are not installed."""

    next_move = "run the command in the error with the compactor's Python, then run it again"


class InventoryError(OperatorError):
    """An S3 Inventory is damaged, incomplete, or lists other objects. Nothing was planned from it."""

    next_move = "pass the manifest.json of a complete inventory with the fields that planning needs"


class TableRefused(OperatorError):
    """The catalog, or its client that reads the files, refuses one change to the table. It had no effect."""

    next_move = "fix the reported cause; if only some manifests are to blame, the job holds these back and continues"


class AccessError(OperatorError):
    """Permission denied, credentials missing, or a bucket that does not exist."""

    next_move = "correct the place, or get permission or credentials; then run it again"


class CredentialsRefused(AccessError):
    """The credentials are currently invalid, for any access."""

    next_move = "renew the credentials, then run it again"


class CredentialsMissing(CredentialsRefused):
    """There are no credentials. The message suggests a remedy."""

    next_move = "set AWS_PROFILE or run `aws sso login`, then run it again; a job on AWS needs a role"


class LinkRefused(AccessError):
    """A symbolic link leads out of the folders that input may be in."""

    next_move = "replace the link with the file, or add the file's folder to input.allowed_prefixes"


class EngineFailed(Exception):
    """An engine failed unexpectedly. The message quotes no data. Not a `CompactorError`, because it may be a bug."""

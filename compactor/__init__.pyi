# What the package exports, for type checkers: importing the package loads none of it.

from compactor.api.compact import CompactResult, compact
from compactor.api.progress import Progress
from compactor.api.rejects import rejects
from compactor.api.spark import BatchResult, foreach_batch, manifest_stream
from compactor.api.trace import TraceResult, trace
from compactor.api.verify import VerifyResult, verify
from compactor.core.errors import (
    AccessError,
    CompactorError,
    CredentialsMissing,
    CredentialsRefused,
    EngineLost,
    ExtraMissing,
    FileError,
    InputError,
    InputRefused,
    InventoryError,
    LinkRefused,
    ManifestError,
    ObjectChanged,
    ObjectNotFound,
    OperatorError,
    RecordTooNew,
    RecordUnreadable,
    ScratchFull,
    SettingsError,
    StagingError,
    StagingLost,
    StoreUnavailable,
    StuckError,
    TableCommitUnknown,
    TableConflict,
    TryAgainError,
)

__version__: str

__all__ = [
    "AccessError",
    "BatchResult",
    "CompactResult",
    "CompactorError",
    "CredentialsMissing",
    "CredentialsRefused",
    "EngineLost",
    "ExtraMissing",
    "FileError",
    "InputError",
    "InputRefused",
    "InventoryError",
    "LinkRefused",
    "ManifestError",
    "ObjectChanged",
    "ObjectNotFound",
    "OperatorError",
    "Progress",
    "RecordTooNew",
    "RecordUnreadable",
    "ScratchFull",
    "SettingsError",
    "StagingError",
    "StagingLost",
    "StoreUnavailable",
    "StuckError",
    "TableCommitUnknown",
    "TableConflict",
    "TraceResult",
    "TryAgainError",
    "VerifyResult",
    "__version__",
    "compact",
    "foreach_batch",
    "manifest_stream",
    "rejects",
    "trace",
    "verify",
]

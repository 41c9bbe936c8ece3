# What the package exports, for type checkers: importing the package loads none of it.

from compactor.api.compact import compact
from compactor.api.compact_result import CompactResult
from compactor.api.progress import Progress
from compactor.api.rejects import rejects
from compactor.api.spark import BatchResult, foreach_batch, manifest_stream
from compactor.api.trace import trace
from compactor.api.verify import verify
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
    RecordUnreadable,
    ScratchFull,
    SettingsError,
    StagingError,
    StagingLost,
    StoreUnavailable,
    StuckError,
    TableCommitUnknown,
    TableConflict,
    TableHeldBack,
    TableRefused,
    TryAgainError,
)
from compactor.ops.trace.trace import TraceResult
from compactor.ops.verify.report import VerifyResult

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
    "RecordUnreadable",
    "ScratchFull",
    "SettingsError",
    "StagingError",
    "StagingLost",
    "StoreUnavailable",
    "StuckError",
    "TableCommitUnknown",
    "TableConflict",
    "TableHeldBack",
    "TableRefused",
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

"""Turn many small NDJSON objects into few, right-sized Parquet files, with no lines lost or duplicated.

`compact`, `verify`, `rejects`, `trace` and, for Spark users, `manifest_stream` and `foreach_batch` work like the
command line. They are loaded on first use; their types are in `__init__.pyi`.
"""

__version__ = "0.1.0"

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

_MODULES = {
    "api.compact": ("compact",),
    "api.compact_result": ("CompactResult",),
    "api.progress": ("Progress",),
    "api.rejects": ("rejects",),
    "api.spark": ("BatchResult", "foreach_batch", "manifest_stream"),
    "api.trace": ("trace",),
    "api.verify": ("verify",),
    "ops.trace.trace": ("TraceResult",),
    "ops.verify.report": ("VerifyResult",),
}
_PLACES = {name: f"compactor.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a function on first use."""
    from importlib import import_module  # noqa: PLC0415 - a command takes Ctrl-C before any module is loaded

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACES.get(name, "compactor.core.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

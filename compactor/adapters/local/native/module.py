"""The module in Rust. Only this one imports `compactor_native`, which not every wheel of the package has."""

import importlib
from typing import Any

from compactor.core.errors import StagingError

INTERFACE = 18
"""The interface version of the module. A module with a different version is not used."""


def is_installed() -> bool:
    """Whether this system can load the module, and it fits this release."""
    return not why_not_installed()


def why_not_installed() -> str:
    """Why the module cannot be used; empty if it can."""
    try:
        found = getattr(importlib.import_module("compactor_native"), "INTERFACE", 1)
    except ImportError:
        return "the native engine is not installed"
    if found != INTERFACE:
        return (
            f"the installed native engine has interface {found}, expected {INTERFACE}: it is from a different release"
        )
    return ""


def native_module() -> Any:
    """The module.

    Raises:
        StagingError: It cannot be used.
    """
    if why := why_not_installed():
        raise StagingError(why)
    return importlib.import_module("compactor_native")

"""The build backend: makes a wheel of the package with the native engine if there is cargo, else one without it.

`pip install --config-settings native=no` leaves the native engine out. maturin builds with it, setuptools without it.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MATURIN = "maturin==1.16.0"
SETUPTOOLS = "setuptools==80.9.0"
NO_CARGO = (
    "cargo is not installed, so the native engine is left out, and compact needs Spark and Java; to have it, install "
    "Rust 1.88 or later, then install this again\n"
)

Settings = Mapping[str, Any] | None


def _is_native(config_settings: Settings) -> bool:
    """Whether the wheel gets the native engine."""
    return (config_settings or {}).get("native") != "no" and shutil.which("cargo") is not None


def _backend(config_settings: Settings) -> Any:
    return _maturin() if _is_native(config_settings) else importlib.import_module("setuptools.build_meta")


def _maturin() -> Any:
    """maturin, which runs its own program by name. Without build isolation, that is beside Python."""
    if shutil.which("maturin") is None:
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return importlib.import_module("maturin")


def _needed(config_settings: Settings = None) -> list[str]:
    if _is_native(config_settings):
        return [MATURIN]
    if (config_settings or {}).get("native") != "no":
        sys.stderr.write(NO_CARGO)  # `pip --verbose` shows it
    return [SETUPTOOLS]


get_requires_for_build_wheel = get_requires_for_build_editable = _needed


def get_requires_for_build_sdist(_config_settings: Settings = None) -> list[str]:
    """What the archive of the sources is made with; maturin asks cargo which files belong to the crate."""
    if shutil.which("cargo") is None:
        sys.exit("cargo is not installed, which the archive of the sources is made with")
    return [MATURIN]


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Make the archive of the sources; returns its name."""
    name: str = _maturin().build_sdist(sdist_directory, config_settings)
    return name


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """Make the wheel; returns its name."""
    name: str = _backend(config_settings).build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Make the wheel of an editable installation; returns its name."""
    name: str = _backend(config_settings).build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata of the wheel; returns the name of their folder."""
    name: str = _backend(config_settings).prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    return name


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    """Write the metadata of an editable installation; returns the name of their folder."""
    name: str = _backend(config_settings).prepare_metadata_for_build_editable(metadata_directory, config_settings)
    return name

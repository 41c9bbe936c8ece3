"""Installs this checkout into this Python with an engine that works: `python -m deploy.install`.

The native engine if cargo can build it, else Spark if there is Java. Without both, one line says what to install.
"""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from compactor.ops.doctor.java import java_fault
from deploy import ROOT
from deploy.pip import PackagingError, pip
from deploy.wheel import LOG, RUST, WITHOUT_NATIVE, build_environment, cargo_fault

PACKAGES = "--packages"
"""The option that also installs what the package needs, from `locks/`."""

_WITH_NATIVE, _WITH_SPARK, _FAILED = 0, 1, 2


def main(options: Sequence[str]) -> int:
    """Install the package; returns 0 with the native engine, 1 with Spark alone, 2 if no engine was installed."""
    try:
        return _install(with_packages=PACKAGES in options)
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return _FAILED


def _install(*, with_packages: bool) -> int:
    fault = cargo_fault()
    if not fault:
        if with_packages:
            _install_packages("install")
        fault = _build_native()
    if not fault:
        return _WITH_NATIVE
    if java := java_fault(os.environ):
        raise PackagingError(
            f"No engine can run here: {fault}; {java} -> install either {RUST}, or Java 17 or 21, then run this again"
        )
    if with_packages:
        _install_packages("install-spark")
    if with_packages or find_spec("compactor_native") is not None:  # that was built from older sources
        _install_package(*WITHOUT_NATIVE)
    sys.stderr.write(f"The native engine was not built, so the Spark engine is used: {fault}\n")
    return _WITH_SPARK


def _build_native() -> str:
    """Install the package with the native engine; returns why that failed, or nothing."""
    _say("Building the native engine; the first build takes about 4 minutes ...")
    try:
        _install_package(log=Path(sys.prefix) / LOG)
    except PackagingError as exc:
        return str(exc)
    return ""


def _install_packages(lock: str) -> None:
    _say("Installing the compactor into .venv ...")
    pip("install", "--require-hashes", "--requirement", str(ROOT / "locks" / f"{lock}.txt"))


def _install_package(*options: str, log: Path | None = None) -> None:
    pip(
        "install",
        "--no-deps",
        "--no-build-isolation",
        *options,
        "--editable",
        str(ROOT),
        log=log,
        env=build_environment(os.environ),
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

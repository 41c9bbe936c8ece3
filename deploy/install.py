"""Installs this checkout into this Python, with the native engine if it can be built: `python -m deploy.install`.

Without cargo, or if the build fails, one line says so, and the package is installed without the engine.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from deploy import ROOT
from deploy.pip import PackagingError, pip
from deploy.wheel import LOG, NO_CARGO, WITHOUT_NATIVE, build_environment, has_cargo


def main() -> int:
    """Install the package; returns 1 if that was without the native engine."""
    if not has_cargo():
        return _without_native(NO_CARGO)
    sys.stdout.write("Building the native engine; the first build takes about 4 minutes ...\n")
    sys.stdout.flush()
    try:
        _install(log=Path(sys.prefix) / LOG)
    except PackagingError as exc:
        return _without_native(str(exc))
    return 0


def _without_native(reason: str) -> int:
    if find_spec("compactor_native") is not None:  # built from older sources, so it may not fit
        _install(*WITHOUT_NATIVE)
    sys.stderr.write(f"The native engine was not built, the Spark engine is used: {reason}\n")
    return 1


def _install(*options: str, log: Path | None = None) -> None:
    pip("install", "--no-deps", *options, "--editable", str(ROOT), log=log, env=build_environment(os.environ))


if __name__ == "__main__":
    sys.exit(main())

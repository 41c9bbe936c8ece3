"""Builds the native engine and installs it beside this Python: `python -m deploy.native_install`.

Nothing depends on it: where it cannot be built, one line says so, and the Spark engine is used.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from deploy.errors import PackagingError
from deploy.native_wheel import NO_CARGO, build_native_wheel, has_cargo
from deploy.pip import pip

_LOG = "native-build.log"


def main() -> int:
    """Build and install it.

    Returns:
        0 if it is installed now, 1 if not.
    """
    try:
        _install()
    except PackagingError as exc:
        _remove()
        sys.stderr.write(f"The native engine was not built, the Spark engine is used: {exc}\n")
        return 1
    return 0


def _install() -> None:
    if not has_cargo():
        raise PackagingError(NO_CARGO)
    with tempfile.TemporaryDirectory(prefix="compactor-native-") as folder:
        wheel = build_native_wheel(Path(folder), Path(sys.prefix) / _LOG)
        pip("install", "--no-deps", "--force-reinstall", str(wheel))


def _remove() -> None:
    """Remove an older one, which may not be what the code of today expects."""
    if find_spec("compactor_native") is not None:
        pip("uninstall", "--yes", "compactor-native")


if __name__ == "__main__":
    sys.exit(main())

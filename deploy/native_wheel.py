"""Builds the wheel of the native engine; `python -m deploy.native_wheel` installs it beside this Python.

The same sources and compilers make the same bytes: the wheel contains no path of the machine and no time.
The engine is optional: if it cannot be built, one line says so and the Spark engine is used.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from deploy import ROOT
from deploy.pip import EPOCH_SECONDS, PackagingError, pip

NATIVE = ROOT / "native"
WHEELS = "compactor_native-*.whl"
LOG = "native-build.log"
NO_CARGO = "cargo is not installed"

GLUE_GLIBC = (2, 34)
"""The glibc of Amazon Linux 2023, on which Glue 5.1 and 6.0 run."""

_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_x86_64\.")


def has_cargo() -> bool:
    """Whether the engine can be built on this machine."""
    return shutil.which("cargo") is not None


def build_native_wheel(folder: Path, log: Path) -> Path:
    """Build the wheel, with the oldest manylinux tag that maturin finds it compatible with.

    Wheels of earlier builds in the folder are deleted. Compiled code is kept for the next build.

    Raises:
        PackagingError: The build failed; the message names the log.
    """
    sys.stdout.write("Building the native engine; the first build takes about 4 minutes ...\n")
    sys.stdout.flush()
    delete_wheels(folder)
    command = (sys.executable, "-m", "maturin", "build", "--release", "--locked", "--strip", "--out", str(folder))
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603 - no argument comes from outside
            command, cwd=NATIVE, stdout=output, stderr=subprocess.STDOUT, check=False, env=build_environment(os.environ)
        )
    wheels = list(folder.glob(WHEELS))
    if done.returncode or len(wheels) != 1:
        raise PackagingError(f"the build of native/ failed, see {log}")
    return wheels[0]


def delete_wheels(folder: Path) -> None:
    """Delete the wheels of earlier builds, so that none of older code is deployed."""
    for wheel in folder.glob(WHEELS):
        wheel.unlink()


def glibc_of(wheel: Path) -> tuple[int, int]:
    """The oldest glibc that a wheel works with, from its tag; a `PackagingError` if that is not manylinux on x86_64."""
    found = _MANYLINUX.search(wheel.name)
    if found is None:
        raise PackagingError(f"{wheel.name}: expected a manylinux tag for x86_64, as Glue needs")
    return int(found[1]), int(found[2])


def glibc_line(wheel: Path) -> str:
    """The glibc that a wheel needs, compared with Glue's; a `PackagingError` if Glue's is older."""
    needed, given = (".".join(map(str, version)) for version in (glibc_of(wheel), GLUE_GLIBC))
    if glibc_of(wheel) > GLUE_GLIBC:
        raise PackagingError(
            f"{wheel.name}: needs glibc {needed}, expected {given} at most, as Glue has: build it on Amazon Linux 2023"
        )
    return f"needs glibc {needed}, no newer than Glue's {given}"


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Environment variables with which the build does not depend on paths and time."""
    names = {given.get("CARGO_HOME") or str(Path.home() / ".cargo"): "cargo", str(NATIVE): "native"}
    rust = [given.get("RUSTFLAGS", ""), *(f"--remap-path-prefix={path}={name}" for path, name in names.items())]
    c = [given.get("CFLAGS", ""), *(f"-ffile-prefix-map={path}={name}" for path, name in names.items())]
    return {
        **given,
        "RUSTFLAGS": " ".join(rust).strip(),
        "CFLAGS": " ".join(c).strip(),
        "SOURCE_DATE_EPOCH": EPOCH_SECONDS,
    }


def main() -> int:
    """Build the engine and install it beside this Python, or uninstall an older one; returns the exit code."""
    try:
        _install()
    except PackagingError as exc:
        if find_spec("compactor_native") is not None:  # built from older sources, so it may not fit
            pip("uninstall", "--yes", "compactor-native")
        sys.stderr.write(f"The native engine was not built, the Spark engine is used: {exc}\n")
        return 1
    return 0


def _install() -> None:
    if not has_cargo():
        raise PackagingError(NO_CARGO)
    with tempfile.TemporaryDirectory(prefix="compactor-native-") as folder:
        wheel = build_native_wheel(Path(folder), Path(sys.prefix) / LOG)
        pip("install", "--no-deps", "--force-reinstall", str(wheel))


if __name__ == "__main__":
    sys.exit(main())

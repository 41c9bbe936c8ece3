"""Builds the wheel of the native engine, and says which glibc it needs.

The same code makes the same bytes, wherever it is built with the same compilers: no path of the machine and no time of
day is in it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.errors import PackagingError
from deploy.imported_modules import ROOT
from deploy.pip import EPOCH_SECONDS

NATIVE = ROOT / "native"
WHEELS = "compactor_native-*.whl"
NO_CARGO = "cargo is not installed"

GLUE_GLIBC = (2, 34)
"""What Amazon Linux 2023 has, on which Glue 5.1 and 6.0 run."""

_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_x86_64\.")


def has_cargo() -> bool:
    """Whether anything can be built here."""
    return shutil.which("cargo") is not None


def build_native_wheel(folder: Path, log: Path) -> Path:
    """Build the wheel, and say first that this takes a while. What was compiled is kept for the next time.

    Args:
        folder: Where it is put; those of earlier builds go from there.
        log: Where everything goes that maturin and cargo say.

    Returns:
        The wheel. Its tag is the oldest that maturin finds it to be good for.

    Raises:
        PackagingError: The build failed; the message names the log.
    """
    sys.stdout.write("Building the native engine; the first time it takes about 4 minutes ...\n")
    sys.stdout.flush()
    for old in folder.glob(WHEELS):
        old.unlink()
    command = (sys.executable, "-m", "maturin", "build", "--release", "--locked", "--strip", "--out", str(folder))
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603 - no argument comes from outside
            command, cwd=NATIVE, stdout=output, stderr=subprocess.STDOUT, check=False, env=build_environment(os.environ)
        )
    wheels = list(folder.glob(WHEELS))
    if done.returncode or len(wheels) != 1:
        raise PackagingError(f"the build of native/ failed, see {log}")
    return wheels[0]


def glibc_of(wheel: Path) -> tuple[int, int]:
    """The glibc that a wheel needs at least, from its tag.

    Raises:
        PackagingError: It is not for Linux on x86_64, or good for no machine but its own.
    """
    found = _MANYLINUX.search(wheel.name)
    if found is None:
        raise PackagingError(f"{wheel.name}: expected a manylinux tag for x86_64, as Glue needs")
    return int(found[1]), int(found[2])


def glibc_line(wheel: Path) -> str:
    """The glibc that a wheel needs, beside Glue's.

    Raises:
        PackagingError: Glue's is older.
    """
    needed = glibc_of(wheel)
    line = f"needs glibc {_dotted(needed)}"
    if needed > GLUE_GLIBC:
        raise PackagingError(
            f"{wheel.name}: {line}, expected {_dotted(GLUE_GLIBC)} at most, as Glue has: build it on Amazon Linux 2023"
        )
    return f"{line}, no newer than Glue's {_dotted(GLUE_GLIBC)}"


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """What makes the bytes independent of the folders and of the day."""
    names = {given.get("CARGO_HOME") or str(Path.home() / ".cargo"): "cargo", str(NATIVE): "native"}
    rust = [given.get("RUSTFLAGS", ""), *(f"--remap-path-prefix={path}={name}" for path, name in names.items())]
    c = [given.get("CFLAGS", ""), *(f"-ffile-prefix-map={path}={name}" for path, name in names.items())]
    return {
        **given,
        "RUSTFLAGS": " ".join(rust).strip(),
        "CFLAGS": " ".join(c).strip(),
        "SOURCE_DATE_EPOCH": EPOCH_SECONDS,
    }


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))

"""Builds the wheel of the package: with the native engine where cargo is installed, else of Python alone.

The same sources and compilers make the same bytes: the wheel contains no path of the machine and no time.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from deploy import ROOT
from deploy.pip import EPOCH_SECONDS, PackagingError, pip

WHEELS = "ndjson_compactor-*.whl"
MACHINES = ("x86_64", "aarch64")
"""The processors of released wheels, as `uname -m` names them. Glue, EMR Serverless and Lambda here have the first."""

LOG = "native-build.log"
RUST = "Rust 1.88 or later"
"""What builds the native engine, as `rust-version` in its Cargo.toml."""

WITHOUT_NATIVE = ("--config-settings", "native=no")
"""The options of pip that leave the native engine out."""

GLUE_GLIBC = (2, 34)
"""The glibc of Amazon Linux 2023, on which Glue 5.1 and 6.0 run."""

RELEASE_GLIBC = (2, 28)
"""The glibc that a released wheel needs at most. zig links against it on any machine."""

_VERSION = re.compile(r"(\d+)\.(\d+)")
_MANYLINUX = r"manylinux_(\d+)_(\d+)_{}\."
_GLUE_MACHINE = "Linux x86_64"
_MATURIN = ("maturin", "build", "--release", "--locked", "--strip")
_ZIG = ("--zig", "--compatibility", "manylinux_{}_{}".format(*RELEASE_GLIBC))


def cargo_fault() -> str:
    """Why this machine cannot build the native engine; empty if it can."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return "cargo is not installed"
    done = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    found, needed = (_VERSION.search(text) for text in (done.stdout, RUST))
    if needed and (not found or _numbers(found) < _numbers(needed)):
        return f"{cargo} is {done.stdout.strip() or 'without a toolchain'}, expected {RUST}"
    return ""


def _numbers(version: re.Match[str]) -> tuple[int, int]:
    return int(version[1]), int(version[2])


def why_not_for_glue() -> str:
    """Why this machine builds no native engine for Glue; empty if it does."""
    machine = f"{platform.system()} {platform.machine()}"
    if machine != _GLUE_MACHINE:
        return f"Glue is {_GLUE_MACHINE}, this is {machine}"
    return cargo_fault()


def why_not_for(machine: str) -> str:
    """Why the Rust of this machine compiles nothing for a processor of `MACHINES`; empty if it does."""
    target = _target_of(machine)
    command = (os.environ.get("RUSTC", "rustc"), "--print", "target-libdir", "--target", target)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if not done.returncode and any(Path(done.stdout.strip()).glob("libstd-*.rlib")):
        return ""
    return f"Rust has no standard library for {target}; to get it: rustup target add {target}"


def _target_of(machine: str) -> str:
    return f"{machine}-unknown-linux-gnu"


def build_wheel(folder: Path, log: Path, machine: str = "") -> Path:
    """Build the wheel with the native engine, for the oldest glibc that this machine can link against.

    Wheels of earlier builds in the folder are deleted. Compiled code is kept for the next build. The machine is one of
    `MACHINES`; this one if it is not given.

    Raises:
        PackagingError: The build failed; the message names the log.
    """
    sys.stdout.write("Building the native engine; the first build takes about 4 minutes ...\n")
    sys.stdout.flush()
    delete_wheels(folder)
    zig = _ZIG if find_spec("ziglang") else ()
    target = ("--target", _target_of(machine)) if machine else ()
    command = (sys.executable, "-m", *_MATURIN, *zig, *target, "--out", str(folder))
    environment = build_environment(os.environ)
    if zig:  # maturin takes the zig of the first Python on the path
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603 - no argument comes from outside
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False, env=environment
        )
    return _only_wheel(folder, f"the build of native/ failed, see {log}", failed=bool(done.returncode))


def build_pure_wheel(folder: Path) -> Path:
    """Build the wheel without the native engine; a `PackagingError` if pip fails."""
    delete_wheels(folder)
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # it may contain modules that were deleted since
    pip("wheel", "--no-deps", "--no-build-isolation", *WITHOUT_NATIVE, "--wheel-dir", str(folder), str(ROOT))
    return _only_wheel(folder, "pip made no wheel")


def _only_wheel(folder: Path, otherwise: str, *, failed: bool = False) -> Path:
    wheels = list(folder.glob(WHEELS))
    if failed or len(wheels) != 1:
        raise PackagingError(otherwise)
    return wheels[0]


def delete_wheels(folder: Path) -> None:
    """Delete the wheels of earlier builds, so that none of older code is deployed."""
    for wheel in folder.glob(WHEELS):
        wheel.unlink()


def built_wheels(folder: Path, machine: str = MACHINES[0]) -> list[Path]:
    """The wheels of the package in a folder, without those for another processor than this one of `MACHINES`."""
    others = tuple(f"_{each}.whl" for each in MACHINES if each != machine)
    return [wheel for wheel in sorted(folder.glob(WHEELS)) if not wheel.name.endswith(others)]


def glibc_of(wheel: Path, machine: str = MACHINES[0]) -> tuple[int, int]:
    """The oldest glibc that a wheel works with, from its tag; a `PackagingError` if it has none for the machine."""
    found = re.search(_MANYLINUX.format(machine), wheel.name)
    if found is None:
        raise PackagingError(f"{wheel.name}: expected a manylinux tag for {machine}")
    return int(found[1]), int(found[2])


def glibc_line(wheel: Path) -> str:
    """The glibc that a wheel needs, compared with Glue's; a `PackagingError` if Glue's is older."""
    needed, given = (".".join(map(str, version)) for version in (glibc_of(wheel), GLUE_GLIBC))
    if glibc_of(wheel) > GLUE_GLIBC:
        raise PackagingError(
            f"{wheel.name}: needs glibc {needed}, expected at most {given}, as on Glue: build it on Amazon Linux 2023"
        )
    return f"needs glibc {needed}, no newer than Glue's {given}"


def build_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Environment variables with which the build does not depend on paths and time."""
    names = {given.get("CARGO_HOME") or str(Path.home() / ".cargo"): "cargo", str(ROOT / "native"): "native"}
    rust = [given.get("RUSTFLAGS", ""), *(f"--remap-path-prefix={path}={name}" for path, name in names.items())]
    c = [given.get("CFLAGS", ""), *(f"-ffile-prefix-map={path}={name}" for path, name in names.items())]
    return {
        **given,
        "RUSTFLAGS": " ".join(rust).strip(),
        "CFLAGS": " ".join(c).strip(),
        "SOURCE_DATE_EPOCH": EPOCH_SECONDS,
    }

"""Builds what is released into dist/: the wheel with the native engine, and the archive of the sources.

`python -m deploy.release` needs cargo and the packages of locks/release.txt. It links against an old glibc by zig, and
auditwheel, which reads the compiled module itself, has to agree.
"""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from deploy import ROOT
from deploy.pip import PackagingError
from deploy.wheel import LOG, RELEASE_GLIBC, build_wheel, cargo_fault, glibc_of

DIST = ROOT / "dist"
SDISTS = "ndjson_compactor-*.tar.gz"

_CONSISTENT = re.compile(r'platform tag:\s+"manylinux_(\d+)_(\d+)_x86_64"')


def release_wheel(folder: Path) -> Path:
    """Build the wheel, and check that it is for every Python from 3.11 and for an old glibc.

    Raises:
        PackagingError: There is no cargo or no zig, the build failed, or the wheel needs something newer.
    """
    if fault := cargo_fault():
        raise PackagingError(fault)
    if find_spec("ziglang") is None:
        raise PackagingError("zig is not installed in this Python; install locks/release.txt")
    wheel = build_wheel(folder, folder / LOG)
    needed = _needed_glibc(wheel)
    if max(glibc_of(wheel), needed) > RELEASE_GLIBC or "-cp311-abi3-" not in wheel.name:
        raise PackagingError(f"{wheel.name}: auditwheel finds manylinux {needed}; expected cp311-abi3, {RELEASE_GLIBC}")
    return wheel


def _needed_glibc(wheel: Path) -> tuple[int, int]:
    """The glibc that the compiled module needs, by auditwheel."""
    shown = _run("auditwheel", "show", str(wheel))
    found = _CONSISTENT.search(shown)
    if found is None:
        raise PackagingError(f"{wheel.name}: auditwheel finds no manylinux tag: {shown.strip()}")
    return int(found[1]), int(found[2])


def release_sdist(folder: Path) -> Path:
    """Build the archive of the sources; a `PackagingError` if maturin fails."""
    for old in folder.glob(SDISTS):
        old.unlink()
    _run("maturin", "sdist", "--out", str(folder))
    [archive] = folder.glob(SDISTS)
    return archive


def _run(module: str, *arguments: str) -> str:
    command = (sys.executable, "-m", module, *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise PackagingError(f"{module} {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """Build both into dist/."""
    DIST.mkdir(exist_ok=True)
    try:
        built = (release_wheel(DIST), release_sdist(DIST))
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    for path in built:
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

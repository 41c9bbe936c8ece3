"""Builds what is released into dist/: wheels with the native engine for two processors, and the archive of the sources.

`python -m deploy.release` needs cargo and the packages of locks/release.txt. It links against an old glibc by zig, and
auditwheel, which reads the compiled module itself, has to agree. A processor for which Rust has no standard library
here is left out, and a line says so.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from deploy import ROOT
from deploy.pip import PackagingError
from deploy.wheel import LOG, MACHINES, RELEASE_GLIBC, build_wheel, cargo_fault, delete_wheels, glibc_of, why_not_for

DIST = ROOT / "dist"
SDISTS = "ndjson_compactor-*.tar.gz"

_CONSISTENT = re.compile(r'platform tag:\s+"manylinux_(\d+)_(\d+)_\w+"')


def release_wheels(folder: Path) -> Iterator[Path]:
    """Build the wheels, and check that each is for every Python from 3.11 and for an old glibc.

    Raises:
        PackagingError: There is no cargo, no zig or no processor to build for, a build failed, or a wheel needs
            something newer.
    """
    if fault := cargo_fault():
        raise PackagingError(fault)
    if find_spec("ziglang") is None:
        raise PackagingError("zig is not installed in this Python; install locks/release.txt")
    missing = {machine: reason for machine in MACHINES if (reason := why_not_for(machine))}
    if len(missing) == len(MACHINES):
        raise PackagingError("; ".join(missing.values()))
    delete_wheels(folder)
    for machine in MACHINES:
        if machine in missing:
            sys.stderr.write(f"No wheel for {machine}: {missing[machine]}\n")
        else:
            yield _release_wheel(folder, machine)


def _release_wheel(folder: Path, machine: str) -> Path:
    sys.stdout.write(f"For {machine}: ")
    with tempfile.TemporaryDirectory(dir=folder) as own:
        wheel = build_wheel(Path(own), folder / LOG, machine)
        needed = _needed_glibc(wheel)
        if max(glibc_of(wheel, machine), needed) > RELEASE_GLIBC or "-cp311-abi3-" not in wheel.name:
            raise PackagingError(
                f"{wheel.name}: auditwheel finds manylinux {needed}; expected cp311-abi3, {RELEASE_GLIBC}"
            )
        return wheel.rename(folder / wheel.name)


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
    """Build all into dist/."""
    DIST.mkdir(exist_ok=True)
    try:
        built = (*release_wheels(DIST), release_sdist(DIST))
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    for path in built:
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

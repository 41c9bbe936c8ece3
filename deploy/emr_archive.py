"""Builds dist/emr-archive.tar.gz, the Python packages of the job for EMR Serverless: `python -m deploy.emr_archive`.

It has the packages of locks/job.txt for EMR's own Python 3.12, by their hashes, the package itself with the native
engine, and `bin/python`, which starts that Python with them. It has no interpreter, so nothing depends on where it was
built; the same packages make the same bytes.
"""

import gzip
import io
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy import ROOT
from deploy.job_wheels import manylinux_platforms
from deploy.locks import lock_file
from deploy.pip import PackagingError, pip
from deploy.wheel import WHEELS, built_wheels

ARCHIVE = ROOT / "dist" / "emr-archive.tar.gz"

EMR_PYTHON = "3.12"
"""A Python of emr-spark-8: "Python 3.9, 3.11, 3.12" [EMR Serverless User Guide, emr-spark-8.0-preview]."""

LAUNCHER = f"""#!/bin/sh
# Starts EMR's Python with the packages beside this file.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/site${{PYTHONPATH:+:$PYTHONPATH}}" exec python{EMR_PYTHON} "$@"
"""

MAX_BYTES = 250_000_000
_LEFT_OUT = {"__pycache__", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
_NATIVE = "compactor_native"


def install_packages(site: Path) -> None:
    """Install the job's packages for EMR's Python and glibc; a `PackagingError` if pip fails."""
    platforms = [word for name in manylinux_platforms() for word in ("--platform", name)]
    only = ("--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", EMR_PYTHON, *platforms)
    pip("install", "--target", str(site), *only, "--require-hashes", "--requirement", str(lock_file("job")))


def build_archive(target: Path, wheel: Path, install: Callable[[Path], None] = install_packages) -> None:
    """Build the archive from the packages and the compactor's own wheel.

    Raises:
        PackagingError: The wheel has no native engine, without which the job is not exact there; pip failed; or the
            archive is too large.
    """
    with zipfile.ZipFile(wheel) as own, tempfile.TemporaryDirectory(prefix="compactor-emr-") as folder:
        if not any(name.startswith((f"{_NATIVE}/", f"{_NATIVE}.")) for name in own.namelist()):
            raise PackagingError(
                f"{wheel.name}: no native engine; expected the wheel that `make package` builds with cargo"
            )
        site = Path(folder)
        install(site)
        own.extractall(site)  # noqa: S202 - it was built here
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        _pack(partial, site)
    if partial.stat().st_size > MAX_BYTES:
        raise PackagingError(f"{target.name}: {partial.stat().st_size:,} bytes, expected {MAX_BYTES:,} at most")
    shutil.move(partial, target)


def _pack(target: Path, site: Path) -> None:
    """Write the launcher and the packages into one archive, without the times of this machine."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        _add(tar, "bin/python", LAUNCHER.encode(), 0o755)
        for path, name in _files(site):
            _add(tar, f"site/{name}", path.read_bytes(), 0o755 if path.suffix == ".so" else 0o644)


def _files(site: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(site.rglob("*")):
        relative = path.relative_to(site)
        if path.is_file() and relative.parts[0] != "bin" and not _LEFT_OUT & set(relative.parts):
            yield path, relative.as_posix()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def main() -> int:
    """Build the archive from the wheel in dist/."""
    wheels = built_wheels(ROOT / "dist")
    if not wheels:
        sys.stderr.write(f"dist/{WHEELS}: no such file; run make package\n")
        return 1
    try:
        build_archive(ARCHIVE, wheels[-1])
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    sys.stdout.write(f"{ARCHIVE.relative_to(ROOT)}  {ARCHIVE.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

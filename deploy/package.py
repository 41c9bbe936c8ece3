"""Builds what is deployed, into dist/: the zip of the functions, and the wheels of the job. `python -m deploy.package`.

The same code makes the same bytes, so that a deployment without changes changes nothing.
"""

import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from deploy.errors import PackagingError
from deploy.imported_modules import ROOT, imported_files
from deploy.native_wheel import NO_CARGO, WHEELS, build_native_wheel, glibc_line, has_cargo
from deploy.pins import FUNCTION_PACKAGES, RUNTIME_OF_FUNCTIONS, pinned
from deploy.pip import pip

DIST = ROOT / "dist"
FUNCTIONS_ZIP = "lambda.zip"
NATIVE_LOG = "native-build.log"
MAX_ZIP_BYTES = 15_000_000

_PLATFORM = ("--platform", "manylinux2014_x86_64", "--python-version", "3.13", "--implementation", "cp")
_GLUE_MACHINE = "Linux x86_64"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can hold
_LEFT_OUT = {"__pycache__", "bin", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def install_functions_packages(site: Path) -> None:
    """Install what the functions need of others, for Lambda and not for this machine.

    Raises:
        PackagingError: pip failed.
    """
    pip("install", "--target", str(site), "--no-deps", "--only-binary=:all:", *_PLATFORM, *pinned(FUNCTION_PACKAGES))


def build_functions(target: Path, install: Callable[[Path], None] = install_functions_packages) -> None:
    """Build the zip of the functions.

    Args:
        target: Where it is put.
        install: Puts the packages of others into a folder.

    Raises:
        PackagingError: The functions import what they must not, pip failed, or the zip is too large.
    """
    own, others = imported_files(sorted((ROOT / "lambdas").glob("*.py")))
    with tempfile.TemporaryDirectory(prefix="compactor-functions-") as folder:
        site = Path(folder)
        install(site)
        shipped = {path.stem for path in site.iterdir()}
        for package, importer in sorted(others.items()):
            if package not in shipped | RUNTIME_OF_FUNCTIONS:
                raise PackagingError(f"{importer.relative_to(ROOT)} imports {package}, which functions do not have")
        installed = (
            path for path in site.rglob("*") if path.is_file() and not _LEFT_OUT & set(path.relative_to(site).parts)
        )
        _write_zip(
            target,
            [(path, path.relative_to(ROOT)) for path in own] + [(path, path.relative_to(site)) for path in installed],
        )
    if target.stat().st_size > MAX_ZIP_BYTES:
        raise PackagingError(f"{target}: {target.stat().st_size:,} bytes, expected {MAX_ZIP_BYTES:,} at most")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the job.

    Raises:
        PackagingError: pip failed.
    """
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # else modules that are gone would be packaged again
    for old in folder.glob("compactor-*.whl"):
        old.unlink()
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    [wheel] = folder.glob("compactor-*.whl")
    return wheel


def build_native(folder: Path) -> str:
    """Build the wheel of the native engine, where that can be done.

    Returns:
        One line about it.

    Raises:
        PackagingError: It could not be built, or Glue's glibc is too old for it; none is in the folder then.
    """
    for old in folder.glob(WHEELS):  # else one of older code would go to Glue
        old.unlink()
    if reason := _why_not():
        return f"{reason}: no wheel of the native engine, the job uses the Spark engine"
    wheel = build_native_wheel(folder, folder / NATIVE_LOG)
    try:
        return f"{_named(wheel)}  {glibc_line(wheel)}"
    except PackagingError:
        wheel.unlink()
        raise


def _write_zip(target: Path, files: Iterable[tuple[Path, Path]]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, name in sorted(files, key=lambda pair: pair[1]):
            info = zipfile.ZipInfo(name.as_posix(), _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _why_not() -> str:
    """Why nothing can be compiled for Glue here; empty if it can."""
    machine = f"{platform.system()} {platform.machine()}"
    if machine != _GLUE_MACHINE:
        return f"Glue is {_GLUE_MACHINE}, this is {machine}"
    return "" if has_cargo() else NO_CARGO


def _named(path: Path) -> str:
    return f"{path.relative_to(path.parents[1])}  {path.stat().st_size:,} bytes"


def main() -> int:
    """Build all."""
    DIST.mkdir(exist_ok=True)
    try:
        build_functions(DIST / FUNCTIONS_ZIP)
        built = (DIST / FUNCTIONS_ZIP, build_wheel(DIST))
        native = build_native(DIST)
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    for line in (*map(_named, built), native):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

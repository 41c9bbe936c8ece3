"""Builds what is deployed into dist/: the zip of the functions, the zip and the wheel of the job.

The same sources make the same bytes, so deploying them again changes nothing.
"""

import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from modulefinder import ModuleFinder
from pathlib import Path

from deploy import ROOT
from deploy.locks import lock_file
from deploy.pip import PackagingError, pip
from deploy.wheel import LOG, build_pure_wheel, build_wheel, glibc_line, why_not_for_glue

DIST = ROOT / "dist"
FUNCTIONS_ZIP = "lambda.zip"
JOB_ZIP = "job-package.zip"
MAX_ZIP_BYTES = 30_000_000
MAX_UNZIPPED_BYTES = 250_000_000
"""What functions may have: "Deployment package (.zip file archive) size: 250 MB, unzipped" [Lambda quotas]."""

_OWN = frozenset({"compactor", "lambdas"})
_PLATFORM = ("--platform", "manylinux2014_x86_64", "--python-version", "3.13", "--implementation", "cp")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
_LEFT_OUT = {"__pycache__", "bin", "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def install_functions_packages(site: Path) -> None:
    """Install the packages that functions need for Lambda's platform; a `PackagingError` if pip fails."""
    packages = ("--require-hashes", "--requirement", str(lock_file("functions")))
    pip("install", "--target", str(site), "--no-deps", "--only-binary=:all:", *_PLATFORM, *packages)


def build_functions(
    target: Path, install: Callable[[Path], None] = install_functions_packages, root: Path = ROOT
) -> None:
    """Build the zip of the functions, from the folders `lambdas` and `compactor` and from what is installed.

    Raises:
        PackagingError: The functions import a package that they do not have, pip failed, or the zip is too large.
    """
    own, others = _imported(root)
    with tempfile.TemporaryDirectory(prefix="compactor-functions-") as folder:
        site = Path(folder)
        install(site)
        shipped = {path.stem for path in site.iterdir()}
        for package, importer in sorted(others.items()):
            if package not in shipped:
                raise PackagingError(f"{importer} imports {package}, which is not in the functions' zip")
        installed = (
            path for path in site.rglob("*") if path.is_file() and not _LEFT_OUT & set(path.relative_to(site).parts)
        )
        _write_zip(
            target,
            [(path, path.relative_to(root)) for path in own] + [(path, path.relative_to(site)) for path in installed],
        )
    with zipfile.ZipFile(target) as archive:
        unzipped_bytes = sum(each.file_size for each in archive.infolist())
    for size_bytes, limit in ((target.stat().st_size, MAX_ZIP_BYTES), (unzipped_bytes, MAX_UNZIPPED_BYTES)):
        if size_bytes > limit:
            raise PackagingError(f"{target}: {size_bytes:,} bytes, expected {limit:,} at most")


def build_job_zip(target: Path) -> None:
    """Build the zip of the package, which Glue 5.1 adds to the path of Spark's executors. It holds no compiled code."""
    files = [(path, path.relative_to(ROOT)) for path in (ROOT / "compactor").rglob("*") if path.is_file()]
    _write_zip(target, [(path, name) for path, name in files if not _LEFT_OUT & set(name.parts)])


def build_job_wheel(folder: Path) -> str:
    """Build the wheel of the job, with the native engine if this machine can; returns a line about it.

    Raises:
        PackagingError: The build failed, or the wheel needs a newer glibc than Glue's and was deleted.
    """
    if reason := why_not_for_glue():
        wheel = build_pure_wheel(folder)
        return f"{_named(wheel)}  {reason}: without the native engine, the job uses the Spark engine"
    wheel = build_wheel(folder, folder / LOG)
    try:
        return f"{_named(wheel)}  {glibc_line(wheel)}"
    except PackagingError:
        wheel.unlink()
        raise


def _imported(root: Path) -> tuple[list[Path], dict[str, str]]:
    """The own files that the handlers import, even late, and each third-party package with a module importing it."""
    finder = ModuleFinder([str(root)])
    for path in sorted((root / "lambdas").glob("[!_]*.py")):
        finder.import_hook(f"lambdas.{path.stem}")
    files = (vars(module)["__file__"] for module in finder.modules.values())  # None: part of the interpreter
    others = {
        name.partition(".")[0]: min(importers)
        for name, importers in finder.badmodules.items()
        if name.partition(".")[0] not in sys.stdlib_module_names | _OWN
    }
    return sorted(map(Path, filter(None, files))), others


def _write_zip(target: Path, files: Iterable[tuple[Path, Path]]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, name in sorted(files, key=lambda pair: pair[1]):
            info = zipfile.ZipInfo(name.as_posix(), _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)


def _named(path: Path) -> str:
    return f"{path.relative_to(path.parents[1])}  {path.stat().st_size:,} bytes"


def main() -> int:
    """Build everything into dist/."""
    DIST.mkdir(exist_ok=True)
    try:
        build_functions(DIST / FUNCTIONS_ZIP)
        build_job_zip(DIST / JOB_ZIP)
        wheel = build_job_wheel(DIST)
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    for line in (*(_named(DIST / name) for name in (FUNCTIONS_ZIP, JOB_ZIP)), wheel):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

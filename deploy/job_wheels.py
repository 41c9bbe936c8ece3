"""Downloads the wheels from which Glue 6.0 builds the Python environment of the job: `python -m deploy.job_wheels`.

They are those of locks/job.txt, by their hashes, for the Python and the glibc of Glue, whatever this machine has. They
hold no interpreter, so nothing depends on where Glue's is.
"""

import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from deploy import ROOT
from deploy.locks import lock_file, locked
from deploy.pip import PackagingError, pip
from deploy.wheel import GLUE_GLIBC

JOB_WHEELS = ROOT / "dist" / "job-wheels"

GLUE_PYTHON = (3, 13)
"""The Python of Glue 6.0: "AWS Glue 6.0 uses Python 3.13 on Amazon Linux 2023" [Using Python virtual environments]."""

_OLDEST_GLIBC = 5  # that manylinux knows
# pip takes no older platform for a newer one, so each has to be named.
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(GLUE_GLIBC[1], _OLDEST_GLIBC - 1, -1)]
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_x86_64")
_OLDER_NAMES = {"manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "any"}
_OF_AN_INTERPRETER = re.compile(r"(^|/)(pyvenv\.cfg|bin/python[\d.]*)$")


def download_wheels(folder: Path) -> list[Path]:
    """Download the wheels into a folder that then has no others; a `PackagingError` says what does not fit."""
    shutil.rmtree(folder, ignore_errors=True)
    platforms = [word for name in manylinux_platforms() for word in ("--platform", name)]
    version = ".".join(map(str, GLUE_PYTHON))
    only = ("--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", version, *platforms)
    pip("download", *only, "--require-hashes", "--requirement", str(lock_file("job")), "--dest", str(folder))
    wheels = sorted(folder.glob("*.whl"))
    if faults := [*wheel_faults(wheels)]:
        raise PackagingError("; ".join(faults))
    return wheels


def manylinux_platforms() -> tuple[str, ...]:
    """The platforms of wheels that run with the glibc of Amazon Linux 2023, which Glue and EMR have."""
    return (*_PLATFORMS, "manylinux2014_x86_64")


def wheel_faults(wheels: Sequence[Path]) -> Iterator[str]:
    """What keeps wheels from being those of the job on Glue: wrong versions, another platform, an interpreter."""
    wanted, found = locked("job"), dict[str, str]()
    for wheel in wheels:
        try:
            name, version, _, tags = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename:
            yield f"{wheel.name}: expected the name of a wheel"
            continue
        found[canonicalize_name(name)] = str(version)
        if not any(map(_fits, tags)):
            python, glibc = (".".join(map(str, each)) for each in (GLUE_PYTHON, GLUE_GLIBC))
            yield f"{wheel.name}: expected x86_64, Python {python}, and at most glibc {glibc}, as on Glue"
        yield from (f"{wheel.name}: contains {name}; expected no interpreter" for name in _interpreters(wheel))
    for package in sorted(wanted.keys() | found.keys()):
        if wanted.get(package) != found.get(package):
            yield f"{package}: {found.get(package, 'missing')}, expected {wanted.get(package, 'none')} by locks/job.txt"


def _fits(tag: Tag) -> bool:
    """Whether a tag is for Glue's interpreter and a glibc that is no newer than Glue's."""
    major, minor = GLUE_PYTHON
    is_own = tag.interpreter == f"cp{major}{minor}" and tag.abi in {tag.interpreter, "abi3", "none"}
    older = re.fullmatch(rf"cp{major}(\d+)", tag.interpreter)
    is_stable = older is not None and int(older[1]) <= minor and tag.abi == "abi3"
    if not (is_own or is_stable or (tag.interpreter in {"py3", f"py{major}{minor}"} and tag.abi == "none")):
        return False
    glibc = _MANYLINUX.fullmatch(tag.platform)
    return tag.platform in _OLDER_NAMES or (glibc is not None and (int(glibc[1]), int(glibc[2])) <= GLUE_GLIBC)


def _interpreters(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if _OF_AN_INTERPRETER.search(name)]


def main() -> int:
    """Download into dist/job-wheels/."""
    try:
        wheels = download_wheels(JOB_WHEELS)
    except PackagingError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    total = sum(wheel.stat().st_size for wheel in wheels)
    sys.stdout.write(f"{JOB_WHEELS.relative_to(ROOT)}  {len(wheels)} wheels, {total:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

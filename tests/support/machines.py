"""Machines of users: which programs are on their PATH, and what `make install` has put into their `.venv`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from deploy.locks import locked

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = (
    *("awk", "bash", "basename", "cat", "chmod", "cp", "date", "dirname", "env", "find", "grep", "head", "ls", "make"),
    *("mkdir", "mv", "nproc", "ps", "readlink", "rm", "sed", "sh", "sleep", "sort", "tail", "touch", "tr", "uname"),
)
"""Programs that every machine has."""


def path_with(folder: Path, *programs: str) -> Path:
    """Make a folder for PATH that has ordinary programs and these ones of this machine, and nothing else."""
    folder.mkdir()
    for name in (*ORDINARY, *programs):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


def user_environment(folder: Path, *, lock: str, native: bool) -> Path:
    """Make an environment with the packages of a lock file, linked from this one, and the package; returns its `bin`.

    Args:
        folder: The environment; created.
        lock: The name of the lock file.
        native: Whether it has the native engine.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "ndjson_compactor.pth").write_text(f"{ROOT}\n")
    for entry in (*_entries(lock), *(_native_module() if native else ())):
        (site / entry.name).symlink_to(entry)
    program = folder / "bin" / "compactor"
    program.write_text(f"#!{folder / 'bin' / 'python'}\nfrom compactor.__main__ import main\n\nmain()\n")
    program.chmod(0o755)
    return folder / "bin"


def _entries(lock: str) -> set[Path]:
    """What the packages of a lock file have in this environment's folder of packages."""
    found: set[Path] = set()
    for name in locked(lock):
        try:
            package = distribution(name)
        except PackageNotFoundError:  # not for this Python
            continue
        parts = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        found |= {Path(str(package.locate_file(part))) for part in parts}
    return found


def _native_module() -> Iterable[Path]:
    spec = find_spec("compactor_native")
    assert spec is not None
    assert spec.origin is not None
    return [Path(spec.origin).parent]


def user_variables(home: Path, *path: Path) -> dict[str, str]:
    """The variables of a shell with nothing but a home and these folders on its PATH."""
    return {"PATH": os.pathsep.join(map(str, path)), "HOME": str(home), "LANG": "C.UTF-8"}

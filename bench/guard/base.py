"""The code that this tree is compared with: that of a commit of the history, with its native engine."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from bench.guard.programs import ROOT
from tests.support.archives import unpack

_PARTS = ("compactor", "lambdas", "glue_entry.py", "native")


def base_of(named: str) -> str:
    """The commit at which this tree and a named one parted; the one before this tree's if that is its own.

    Raises:
        RuntimeError: The history does not have it.
    """
    base = _git("merge-base", "HEAD", named)
    is_own = base == _git("rev-parse", "HEAD")
    return (_git("rev-parse", "HEAD~1") if is_own else base).decode().strip()


def unpack_commit(commit: str, folder: Path) -> None:
    """Write the code of a commit into a folder, from where `PYTHONPATH` finds it, its native engine too."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit, *_PARTS))) as tar:
        unpack(tar, folder)
    module = ROOT / ".tools" / f"compactor_native-{commit}.so"
    if not module.exists():
        _build_native(folder / "native", module)
    shutil.copyfile(module, folder / "compactor_native.so")


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {words[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def _build_native(crate: Path, module: Path) -> None:
    """Build a crate, with the dependencies that were built for that of this tree; two processes may do so at once."""
    target = ROOT / "native" / "target"
    build = ["cargo", "build", "--release", "--locked", "--lib", "--features", "extension-module"]
    environment = {**os.environ, "PYO3_PYTHON": sys.executable, "CARGO_TARGET_DIR": str(target)}
    built = subprocess.run(build, cwd=crate, env=environment, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr)
    module.parent.mkdir(exist_ok=True)
    new = module.with_suffix(f".{os.getpid()}")
    shutil.copyfile(target / "release" / "libcompactor_native.so", new)
    new.replace(module)

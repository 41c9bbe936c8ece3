"""The code of the release before this one, from the history of the repository."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.support.archives import unpack

ROOT = Path(__file__).resolve().parents[2]

COMMIT = "c9b79d698ada1018c229b828f12a45ecf96a2ce7"
"""The release before; until there is one, a commit that writes the same columns, with its modules in other folders."""

PARTS = ("compactor", "lambdas", "glue_entry.py", "native")
MODULE = ROOT / ".tools" / f"compactor_native-{COMMIT}.so"


def has_history() -> bool:
    """Whether the history goes back to that release; that of a shallow clone or of the archive of sources does not."""
    if shutil.which("git") is None:
        return False
    asked = ["git", "-C", str(ROOT), "cat-file", "-e", f"{COMMIT}^{{tree}}"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def unpack_previous(folder: Path) -> None:
    """Write the code of the release before into a folder, from where `PYTHONPATH` finds it, its native engine too."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", COMMIT, *PARTS], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        unpack(tar, folder)
    if not MODULE.exists():
        _build_native(folder / "native")
    shutil.copyfile(MODULE, folder / "compactor_native.so")


def _build_native(crate: Path) -> None:
    """Build its crate, with the dependencies that were built for this release's; two processes may do so at once."""
    target = ROOT / "native" / "target"
    build = ["cargo", "build", "--release", "--locked", "--lib", "--features", "extension-module"]
    environment = {**os.environ, "PYO3_PYTHON": sys.executable, "CARGO_TARGET_DIR": str(target)}
    built = subprocess.run(build, cwd=crate, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    MODULE.parent.mkdir(exist_ok=True)
    new = MODULE.with_suffix(f".{os.getpid()}")
    shutil.copyfile(target / "release" / "libcompactor_native.so", new)
    new.replace(MODULE)

"""`make install` ends with an engine that works, or says in one line what to install."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.documents import blocks_of
from tests.support.extras import CARGO
from tests.support.machines import ROOT, path_with, user_variables

PIP = """
import json, os, sys
with open("pip.log", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit("--log" in sys.argv and os.path.exists("build-fails"))
"""
"""Stands in for pip: it writes down what it was asked for, and fails to build the native engine if a file says so."""

PYTHON = f"""#!/bin/sh
{sys.executable} "$@" && case "$*" in
"-m venv .venv --without-pip") cp -r pip .venv/lib/python3.*/site-packages/ ;;
esac
"""
JAVA = "#!/bin/sh\necho 'openjdk version \"17.0.15\"' >&2\n"


@dataclass(frozen=True)
class Clone:
    """A clone of the project on a machine with a PATH of its own, and a pip that installs nothing."""

    folder: Path

    def has(self, program: str, text: str) -> None:
        """Install a program."""
        path = self.folder / "path" / program
        path.write_text(text)
        path.chmod(0o755)

    def has_cargo(self, version: str = "1.90.0") -> None:
        self.has("cargo", f"#!/bin/sh\necho 'cargo {version} (0123abcde 2025-09-01)'\n")

    def install(self) -> subprocess.CompletedProcess[str]:
        """Run `make install`."""
        variables = user_variables(self.folder, self.folder / "path")
        return subprocess.run(
            ["make", "install"], cwd=self.folder, env=variables, capture_output=True, text=True, check=False
        )

    @property
    def installed(self) -> list[str]:
        """What pip was asked to install since the last time: lock files, and the package with or without `native`."""
        log = self.folder / "pip.log"
        calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return [_installed(call, self.folder) for call in calls]


def _installed(call: list[str], folder: Path) -> str:
    """What a call of pip installs, once its options are checked."""
    assert call[0] == "install"
    if "--requirement" in call:
        lock = Path(call[call.index("--requirement") + 1])
        assert "--require-hashes" in call
        assert lock.read_bytes() == (ROOT / "locks" / lock.name).read_bytes()
        return lock.stem
    assert call[call.index("--editable") + 1] == str(folder)
    assert {"--no-deps", "--no-build-isolation"} <= {*call}  # pip would fetch the build back ends without hashes
    return "without native" if "native=no" in call else "native"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    for name in ("deploy", "locks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("compactor", "native", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    makefile = (ROOT / "Makefile").read_text().replace("-m venv .venv", "-m venv .venv --without-pip")
    (tmp_path / "Makefile").write_text(makefile)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text(PIP)
    path_with(tmp_path / "path")
    clone = Clone(tmp_path)
    clone.has("python3", PYTHON)
    return clone


@pytest.mark.parametrize("java", [True, False], ids=("Java", "no Java"))
@pytest.mark.parametrize("cargo", ["1.88.0", "1.75.0", "fails", ""])
def test_every_machine(cargo: str, java: bool, clone: Clone) -> None:
    """With cargo the native engine is built, else Spark is installed if there is Java, else a line says what to do."""
    if cargo:
        clone.has_cargo("1.88.0" if cargo == "fails" else cargo)
    if cargo == "fails":
        (clone.folder / "build-fails").touch()
    if java:
        clone.has("java", JAVA)
    log = clone.folder / ".venv" / "native-build.log"
    why = {
        "1.75.0": f"{clone.folder}/path/cargo is cargo 1.75.0 (0123abcde 2025-09-01), expected Rust 1.88 or later",
        "fails": f"pip install failed, see {log}",
        "": "cargo is not installed",
    }.get(cargo)
    tried = ["install", "native"] if cargo in {"1.88.0", "fails"} else []

    done = clone.install()
    told = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    if why is None:
        assert (done.returncode, told, clone.installed) == (0, [], tried)
    elif java:
        assert (done.returncode, clone.installed) == (0, [*tried, "install-spark", "without native"])
        assert told == [f"The native engine was not built, so the Spark engine is used: {why}"]
    else:
        no_java = "Java 17 or 21 is needed: no `java` on the PATH and no JAVA_HOME"
        move = "install either Rust 1.88 or later, or Java 17 or 21, then run this again"
        assert (done.returncode, clone.installed) == (2, tried)
        assert told == [f"No engine can run here: {why}; {no_java} -> {move}"]
    assert ("Ready" in done.stdout) == (done.returncode == 0)


def test_again_on_a_machine_that_has_more(clone: Clone) -> None:
    """A call after Java, then cargo, was installed does what a first call would; then there is nothing left to do."""
    assert clone.install().returncode == 2
    clone.has("java", JAVA)
    assert "Ready" in clone.install().stdout
    assert clone.installed == ["install-spark", "without native"]
    clone.has_cargo()
    assert "Ready" in clone.install().stdout
    assert clone.installed == ["install", "native"]
    assert clone.install().stdout.startswith("Ready")
    assert clone.installed == []


def test_a_developers_machine_without_an_engine(clone: Clone) -> None:
    """The packages of `make dev` include Spark, which is no engine without Java."""
    clone.install()
    (clone.folder / ".venv" / ".developer").touch()
    done = clone.install()
    assert done.returncode == 2
    assert "Java 17 or 21 is needed" in done.stderr.splitlines()[-2]
    assert "Ready: .venv/bin/compactor" not in done.stdout
    clone.has_cargo()
    assert "Ready: .venv/bin/compactor" in clone.install().stdout


@pytest.mark.large
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "programs",
    [("java",), pytest.param(("cargo", "rustc", "cc", "ld", "as", "ar"), marks=CARGO.needed)],
    ids=("Java", "cargo"),
)
def test_a_fresh_clone(programs: tuple[str, ...], tmp_path: Path) -> None:
    """With an index of packages: the first commands of the README work on a machine with Java or cargo alone."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    path = path_with(tmp_path / "path", *programs)
    (path / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or "proxy" in name}
    rust = {
        name: os.environ.get(f"{name}_HOME") or str(Path.home() / f".{name.lower()}") for name in ("CARGO", "RUSTUP")
    }
    homes = {f"{name}_HOME": place for name, place in rust.items()}
    done = subprocess.run(
        ["bash", "-ec", "\n".join(blocks_of(ROOT / "README.md", "sh")[0].lines)],
        cwd=tmp_path / "clone",
        env={**kept, **homes, **user_variables(tmp_path, path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified  15 lines = 8 rows + 6 rejects + 1 blank" in done.stdout
    assert f"engine    {'spark' if programs == ('java',) else 'native'}: " in done.stdout

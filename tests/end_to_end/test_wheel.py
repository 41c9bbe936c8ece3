"""From an empty environment with the wheel at hand to verified Parquet, without Java, cargo and Go."""

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compactor import __version__
from deploy import ROOT
from deploy.release import SDISTS
from deploy.wheel import build_wheel, built_wheels
from tests.support.extras import CARGO

pytestmark = [pytest.mark.large, pytest.mark.timeout(1800)]

DIST = ROOT / "dist"
LINES = 20_000


@dataclass
class Terminal:
    """Runs commands in a folder as a new user would, whose PATH has nothing but Python, and prints what each takes."""

    folder: Path
    seconds: list[float] = field(default_factory=list)

    def run(self, *command: str, expected: int = 0) -> str:
        environment = {"PATH": str(self.folder / "empty" / "bin"), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or "proxy" in name
        }
        started, used = time.monotonic(), _cpu_seconds()
        done = subprocess.run(
            command, cwd=self.folder, env={**kept, **environment}, capture_output=True, text=True, check=False
        )
        said = " ".join(Path(each).name if each.startswith("/") else each for each in command)
        self.seconds.append(_cpu_seconds() - used)
        took = f"{time.monotonic() - started:.1f} s, of which {self.seconds[-1]:.1f} s work of a core"
        sys.stdout.write(f"\n$ {said}\n{done.stdout}[{took}]\n")
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout + done.stderr


def _cpu_seconds() -> float:
    """What the processes started here have used: on a busy machine this says more than a clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` has built; built now if there is none."""
    found = [path for path in built_wheels(DIST, platform.machine()) if "-abi3-" in path.name]
    if not found:
        CARGO.need()
        folder = tmp_path_factory.mktemp("wheel")
        return build_wheel(folder, folder / "build.log")
    return found[0]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_from_nothing_to_verified_parquet(terminal: Terminal, wheel: Path) -> None:
    """A few commands; nothing but what the base lock names is installed; every line is accounted for."""
    raw = terminal.folder / "raw"
    raw.mkdir()
    for day in range(1, 11):
        lines = (json.dumps({"id": number, "day": day, "text": "x" * 50}) for number in range(LINES // 10))
        file = raw / f"events-2025-12-{day:02}.ndjson"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (time.time() - 60, time.time() - 60))
    shutil.copy(wheel, terminal.folder / wheel.name)

    terminal.run(sys.executable, "-m", "venv", "empty")
    made = terminal.seconds.pop()
    pip = ("empty/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    terminal.run(*pip, "download", "--require-hashes", "--dest", "packages", "-r", str(ROOT / "locks" / "base.txt"))
    download = terminal.seconds.pop()
    terminal.run(*pip, "install", "--no-index", "--find-links", "packages", wheel.name)
    assert not [name for name in ("java", "cargo", "go") if shutil.which(name, path=str(terminal.folder / "empty/bin"))]
    assert terminal.run("empty/bin/compactor", "--version") == f"compactor {__version__}\n"
    told = terminal.run("empty/bin/compactor", "compact", "--deep", "raw", "rows")
    assert f"{LINES:,} lines = {LINES:,} rows + 0 rejects + 0 blank" in told
    sys.stdout.write(
        f"\nfrom the empty environment to verified Parquet: {len(terminal.seconds)} commands, "
        f"{sum(terminal.seconds):.1f} s work; beside them {made:.1f} s to make it and {download:.1f} s to download\n"
    )
    needs = terminal.run("empty/bin/compactor", "compact", "s3://bucket/raw", "elsewhere", expected=2)
    assert needs.endswith("-m pip install 'ndjson-compactor[aws]'\n")
    installed = terminal.run(*pip, "list", "--format", "freeze").lower()
    assert not [name for name in ("pyspark", "boto3", "moto") if name in installed]


def test_sources_without_cargo(terminal: Terminal) -> None:
    """Without cargo the archive of the sources is installed without the native engine, and the first use says so."""
    [archive] = sorted(DIST.glob(SDISTS)) or [None]
    if archive is None:
        pytest.skip("make wheel builds the archive of the sources")
    terminal.run(sys.executable, "-m", "venv", "empty")
    pip = ("empty/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-deps")
    assert "cargo is not installed, so the native engine is left out" in terminal.run(*pip, "--verbose", str(archive))

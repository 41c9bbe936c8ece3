"""From an empty environment with the wheel at hand to verified Parquet, without Java, cargo and Go."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compactor import __version__
from deploy import ROOT
from deploy.release import SDISTS
from deploy.wheel import WHEELS, build_wheel
from tests.support.extras import CARGO

pytestmark = [pytest.mark.large, pytest.mark.timeout(1800)]

DIST = ROOT / "dist"
LINES = 20_000


@dataclass
class Terminal:
    """Runs commands in a folder as a new user would, whose PATH has nothing but Python, and prints what each takes."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, *command: str, expected: int = 0) -> str:
        environment = {"PATH": str(self.folder / "empty" / "bin"), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_")) or "proxy" in name
        }
        started = time.monotonic()
        done = subprocess.run(
            command, cwd=self.folder, env={**kept, **environment}, capture_output=True, text=True, check=False
        )
        said = " ".join(Path(each).name if each.startswith("/") else each for each in command)
        self.seconds[said] = time.monotonic() - started
        sys.stdout.write(f"\n$ {said}\n{done.stdout}[{self.seconds[said]:.2f} s]\n")
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` has built; built now if there is none."""
    found = [path for path in DIST.glob(WHEELS) if "-abi3-" in path.name]
    if not found:
        CARGO.need()
        folder = tmp_path_factory.mktemp("wheel")
        return build_wheel(folder, folder / "build.log")
    return found[0]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    used = Terminal(tmp_path)
    yield used
    total = sum(seconds for said, seconds in used.seconds.items() if "download" not in said)
    sys.stdout.write(f"\n{total:.1f} s beside the download\n")


def test_from_nothing_to_verified_parquet(terminal: Terminal, wheel: Path) -> None:
    """Four commands; nothing but what the base lock names is installed; every line is accounted for."""
    raw = terminal.folder / "raw"
    raw.mkdir()
    for day in range(1, 11):
        lines = (json.dumps({"id": number, "day": day, "text": "x" * 50}) for number in range(LINES // 10))
        (raw / f"events-2025-12-{day:02}.ndjson").write_text("\n".join(lines) + "\n")
        os.utime(raw / f"events-2025-12-{day:02}.ndjson", (1_700_000_000, 1_700_000_000))
    shutil.copy(wheel, terminal.folder / wheel.name)

    terminal.run(sys.executable, "-m", "venv", "empty")
    pip = ("empty/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    terminal.run(*pip, "download", "--require-hashes", "--dest", "packages", "-r", str(ROOT / "locks" / "base.txt"))
    terminal.run(*pip, "install", "--no-index", "--find-links", "packages", wheel.name)
    assert not [name for name in ("java", "cargo", "go") if shutil.which(name, path=str(terminal.folder / "empty/bin"))]
    assert terminal.run("empty/bin/compactor", "--version") == f"compactor {__version__}\n"
    told = terminal.run("empty/bin/compactor", "compact", "--deep", "raw", "rows")
    assert f"{LINES:,} lines = {LINES:,} rows + 0 rejects + 0 blank" in told
    needs = terminal.run("empty/bin/compactor", "compact", "s3://bucket/raw", "elsewhere", expected=2)
    assert needs.endswith("boto3 is not installed -> pip install 'ndjson-compactor[aws]'\n")
    installed = terminal.run(*pip, "list", "--format", "freeze").lower()
    assert not [name for name in ("pyspark", "boto3", "moto") if name in installed]


def test_sources_without_cargo(terminal: Terminal) -> None:
    """The archive of the sources says in a line that cargo is missing, and can be installed without the engine."""
    [archive] = sorted(DIST.glob(SDISTS)) or [None]
    if archive is None:
        pytest.skip("make wheel builds the archive of the sources")
    terminal.run(sys.executable, "-m", "venv", "empty")
    pip = ("empty/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-deps")
    told = terminal.run(*pip, str(archive), expected=1)
    assert "[1 lines of output]" in told
    assert "cargo is not installed, and the native engine is built with it" in told
    terminal.run(*pip, "--config-settings", "native=no", str(archive))

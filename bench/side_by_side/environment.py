"""The environment of the other tools, which is thrown away by `make clean`."""

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def bin_folder(environment: Path) -> Path:
    """Where its programs are."""
    return environment / "bin"


def ensure_environment(environment: Path) -> None:
    """Make it, unless it has these versions already."""
    marker = environment / REQUIREMENTS.name
    if marker.exists() and marker.read_bytes() == REQUIREMENTS.read_bytes():
        return
    shutil.rmtree(environment, ignore_errors=True)
    print("Installing DuckDB and dlt into an environment of their own ...", flush=True)
    subprocess.run((sys.executable, "-m", "venv", str(environment)), check=True)
    pip = (str(bin_folder(environment) / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run((*pip, "install", "--no-deps", "--requirement", str(REQUIREMENTS)), check=True)
    shutil.copy(REQUIREMENTS, marker)


def version(package: str) -> str:
    """Of a package, as the requirements pin it."""
    pins = dict(line.split("==", 1) for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    return pins[package]

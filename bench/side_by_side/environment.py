"""An environment of other tools, with what a file pins, which is thrown away by `make clean`."""

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def bin_folder(environment: Path) -> Path:
    """Where its programs are."""
    return environment / "bin"


def ensure_environment(environment: Path, requirements: Path = REQUIREMENTS, said: str = "DuckDB and dlt") -> None:
    """Make it, unless it has these versions already.

    Args:
        environment: Its folder.
        requirements: All packages, each with its version.
        said: What is installed, for a person.
    """
    marker = environment / requirements.name
    if marker.exists() and marker.read_bytes() == requirements.read_bytes():
        return
    shutil.rmtree(environment, ignore_errors=True)
    print(f"Installing {said} into an environment of their own ...", file=sys.stderr, flush=True)
    subprocess.run((sys.executable, "-m", "venv", str(environment)), check=True)
    pip = (str(bin_folder(environment) / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run((*pip, "install", "--no-deps", "--requirement", str(requirements)), check=True)
    shutil.copy(requirements, marker)


def version(package: str, requirements: Path = REQUIREMENTS) -> str:
    """Of a package, as the requirements pin it."""
    pins = dict(line.split("==", 1) for line in requirements.read_text().splitlines() if "==" in line)
    return pins[package]

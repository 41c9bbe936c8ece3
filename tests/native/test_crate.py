"""The crate of the native engine: tested by its own tests, and there wherever it can be built."""

import os
import shutil
import subprocess
import sysconfig
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATE = ROOT / "native" / "Cargo.toml"

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")


@needs_cargo
def test_the_module_is_there() -> None:
    """Where cargo is at hand, `make install` has built the native engine, so that no test silently goes without it."""
    assert import_module("compactor_native").__file__
    assert version("compactor-native") == tomllib.loads(CRATE.read_text())["package"]["version"]


@needs_cargo
@pytest.mark.timeout(1800)
def test_the_tests_of_the_crate() -> None:
    """`cargo test` passes; the first time it compiles for minutes."""
    library_path = f"{sysconfig.get_config_var('LIBDIR')}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    done = subprocess.run(
        ["cargo", "test", "--quiet", "--locked", "--manifest-path", CRATE],
        env={**os.environ, "LD_LIBRARY_PATH": library_path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

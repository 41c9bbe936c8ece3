"""The crate of the native engine: tested by its own tests, and there wherever it can be built."""

import os
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from deploy.native_wheel import build_environment
from tests.support.extras import CARGO

ROOT = Path(__file__).resolve().parents[2]


@CARGO.needed
def test_the_module_is_there() -> None:
    """Where cargo is at hand, `make install` has built the native engine, so that no test silently goes without it."""
    assert import_module("compactor_native").__file__


@CARGO.needed
@pytest.mark.timeout(1800)
def test_the_tests_of_the_crate() -> None:
    """`cargo test` passes."""
    # As a module, it is linked without Python, which not every machine has as a library; no test may need one. Built as
    # the wheel was, so that nothing is compiled again but the crate itself.
    done = subprocess.run(
        ["cargo", "test", "--release", "--quiet", "--locked", "--features", "extension-module"],
        cwd=ROOT / "native",
        env=build_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

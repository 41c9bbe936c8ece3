"""The crate of the native engine: installed wherever it can be built, and tested by its own tests."""

import os
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.extras import CARGO

ROOT = Path(__file__).resolve().parents[2]


@CARGO.needed
def test_the_module_is_there() -> None:
    """If cargo is installed, so is the native engine: no test that needs it is skipped silently."""
    assert import_module("compactor_native").__file__


@CARGO.needed
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rounds", ["10", pytest.param("60", marks=pytest.mark.full)])
def test_the_tests_of_the_crate(rounds: str) -> None:
    """`cargo test` passes."""
    # As an extension module it is linked without libpython, which not every machine has; no test may need it.
    # The dev profile: in release, cargo compiles every dependency again, because the tests need object code and the
    # wheel's dependencies have only bitcode for its link-time optimisation.
    done = cargo("test", "--lib", "--features", "extension-module", rounds=rounds)
    assert done.returncode == 0, done.stdout + done.stderr


@CARGO.needed
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_fuzz_targets_fit_the_crate() -> None:
    """They compile, although only `make fuzz` runs them."""
    done = cargo("check", "--manifest-path", "fuzz/Cargo.toml")
    assert done.returncode == 0, done.stdout + done.stderr


def cargo(command: str, *options: str, rounds: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cargo", command, "--quiet", "--locked", *options],
        cwd=ROOT / "native",
        # What stands in one unit of code generation is compiled once, which takes a sixth less.
        env={**os.environ, "ROUNDS": rounds, "CARGO_PROFILE_DEV_CODEGEN_UNITS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

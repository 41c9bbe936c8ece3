"""The simulation keeps every promise for a few seeds, and replays each exactly."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHORT = 1 / 60  # days: half of what happens in a seed is left out


def simulated(*arguments: str, carriers: str = "") -> subprocess.CompletedProcess[str]:
    """Run the simulation in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "SIMULATE_WITH_THREADS": carriers},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize(("first", "seeds"), [(6, 2), pytest.param(1, 10, marks=pytest.mark.full)])
def test_ten_seeds_keep_every_promise_and_are_replayed_exactly(first: int, seeds: int) -> None:
    """Whatever ran before in the process, and whether greenlets or threads carry the tasks."""
    several = simulated("--first", str(first), "--seeds", str(seeds), "--days", f"{SHORT:.6f}", "--verbose")
    assert several.returncode == 0, several.stdout + several.stderr
    assert f"{seeds} of {seeds} seeds kept every promise" in several.stdout
    one = simulated("--seed", "7", "--days", f"{SHORT:.6f}", "--verbose", carriers="yes")
    [told] = re.findall("^seed 7: .*$", one.stdout, re.MULTILINE)
    assert told in several.stdout.splitlines()

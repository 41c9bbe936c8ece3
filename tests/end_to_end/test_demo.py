"""The demo goes the whole way, and ends well only where exactly what went in came out."""

import os
import subprocess
import sys

import pytest

from tests.support.extras import NATIVE

WITHOUT_SPARK = """
from compactor.cli.ui.terminal import echo
from compactor.demo.run import run_demo
raise SystemExit(not run_demo(4_000_000, None, echo, with_spark=False))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["-m", "compactor", "demo", "--size", "4mb"], marks=pytest.mark.full, id="spark"),
        pytest.param(["-c", WITHOUT_SPARK], marks=NATIVE.needed, id="listing"),
    ],
)
def test_the_demo_goes_the_whole_way(words: list[str]) -> None:
    """From objects to verified Parquet and measurements: events, functions, a job that is killed and comes back."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COMPACTOR_"))}
    done = subprocess.run(
        [sys.executable, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "0 given back",
        "job up      wait: run jr_1 has been RUNNING",
        "job killed  start: run jr_1 ended",
        "job back    wait: run jr_2 has been RUNNING",
        "drained     the run was asked to end, and ended with 0",
        "discrepancies  none",
    ):
        assert said in done.stdout, done.stdout
    measured = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines() if line.endswith(" Count")}
    assert measured["FilesAnnounced"] == measured["ManifestsBuilt"] == measured["Restarts"] == "2"
    if words[0] == "-m":  # without Spark, all may be committed before the kill, and the figures die with the process
        assert measured["ManifestsCommitted"] == "2"

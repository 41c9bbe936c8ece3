"""The demo goes the whole way, and ends well only where exactly what went in came out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from tests.support.extras import KAFKA, NATIVE
from tests.support.kafka_broker import FOLDER


def demo(*words: str, size: str = "4mb") -> "subprocess.CompletedProcess[str]":
    """Run the demo."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COMPACTOR_"))}
    command = [sys.executable, "-m", "compactor", "demo", "--size", size, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=280)


@NATIVE.needed
def test_the_demo_in_a_folder(tmp_path: Path) -> None:
    """By commands alone, without functions and a control plane: exactly what went in came out."""
    done = demo("--source", "listing", "--local", str(tmp_path / "place"), size="1mb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "discrepancies  none" in done.stdout, done.stdout
    assert list((tmp_path / "place" / "lake").rglob("*.parquet"))


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--source", "s3"], id="spark"),
        pytest.param(["--source", "listing"], marks=NATIVE.needed, id="listing"),
    ],
)
def test_the_demo_goes_the_whole_way(words: list[str]) -> None:
    """From objects to verified Parquet and measurements: events, functions, a job that is killed and comes back."""
    done = demo(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "0 given back",
        "job up      wait: run jr_1 is RUNNING",
        "job killed  start: run jr_1 ended",
        "job back    wait: run jr_2 is RUNNING",
        "drained     the run was asked to end, and ended with 0",
        "discrepancies  none",
    ):
        assert said in done.stdout, done.stdout
    measured = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines() if line.endswith(" Count")}
    assert measured["FilesAnnounced"] == measured["ManifestsBuilt"] == measured["Restarts"] == "2"
    if words[1] == "s3":  # without Spark, all may be committed before the kill, and the figures die with the process
        assert measured["ManifestsCommitted"] == "2"


@KAFKA.needed
@pytest.mark.full
def test_the_demo_of_a_topic() -> None:
    """Every value is a row or a reject, and a second plan finds nothing; the broker is gone afterwards."""
    done = demo("--source", "kafka", "--kafka-jars", str(FOLDER))
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "Wrote 1 manifest of 3 files",
        "discrepancies  none",
        "offset 17 of topic id",
        "is line 18 of this range",
        "Wrote 0 manifests of 0 files",
        "6 invalid_json, 2 invalid_utf8, 2 not_an_object; 10 expected",
    ):
        assert said in done.stdout, done.stdout


@KAFKA.needed
def test_what_the_demo_of_a_topic_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what is missing before it begins."""
    words = ["--source", "kafka", "--kafka-jars", str(tmp_path)]
    without_broker = refused(*words)
    assert (without_broker.exit_code, without_broker.stdout) == (2, "")
    assert "holds no broker -> expected a folder with its jars, which `make demo SOURCE=kafka` downloads" in (
        without_broker.stderr
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "java: not found -> expected Java 17 or 21, in which the broker runs" in refused(*words).stderr
    assert "the demo keeps nothing" in refused(*words, "--local", str(tmp_path)).stderr
    assert "--kafka-jars needs --source kafka" in refused("--kafka-jars", str(tmp_path)).stderr


def refused(*words: str) -> Result:
    """What the demo says in this process, as it does not begin."""
    return CliRunner().invoke(command, ["demo", "--size", "4mb", *words])

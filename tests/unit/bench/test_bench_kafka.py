"""The benchmark of topics: its records and its table. The benchmark itself starts a broker and Spark."""

import json
from pathlib import Path

import pytest

from tests.support.extras import KAFKA

pytest.importorskip("psutil")
KAFKA.need()

from bench.kafka.feeding import RECORD_BYTES, Filled, values  # noqa: E402 - it needs the client
from bench.kafka.figures import HEADINGS, cells, figures_of  # noqa: E402
from bench.measure import Measurement  # noqa: E402
from bench.protocol import Pass  # noqa: E402


def measured(name: str, *seconds: float, rows: int = 10) -> Measurement:
    passes = tuple(Pass(each, 100_000_000, (3_000_000,), rows, cpu_seconds=each / 2) for each in seconds)
    return Measurement(name, passes, 2**30)


def test_records_are_objects_of_one_length() -> None:
    """Also at the end of a block; the same seed gives the same ones."""
    made = list(values(10_003, 7))
    assert {len(each) for each in made} == {RECORD_BYTES}
    assert all(b"\n" not in each and json.loads(each)["note"] for each in (*made[:200], *made[-200:]))
    assert made == list(values(10_003, 7))


def test_contenders_find_the_topic(tmp_path: Path) -> None:
    """What was written of it is what they read."""
    filled = Filled("127.0.0.1:1", 10, 10_000, 2, ("id", "event"))
    filled.keep(tmp_path / "input")
    assert Filled.kept(tmp_path / "input") == filled


def test_figures() -> None:
    """The median without the first pass, the ratio to the first contender, and a note where rows are missing."""
    spark, own = measured("spark", 9.0, 4.0, 5.0, 6.0), measured("compactor", 3.0, 1.0, 2.0, 2.5)
    found = figures_of(own, spark, 10)
    assert (found.ratio, found.megabytes_per_second, found.note) == (2.5, 50.0, "")
    assert found.cpu_seconds_per_gigabyte == pytest.approx(10.0)
    assert len(cells(found)) == len(HEADINGS)
    assert figures_of(measured("short", 1.0, rows=9), spark, 10).note == "wrote 9 rows, expected 10"
    failed = figures_of(Measurement("gone", (), 0, "exit code 1"), spark, 10)
    assert (failed.ratio, failed.note) == (0, "exit code 1")

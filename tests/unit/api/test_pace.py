"""What is shown while a command works: how much is done, how fast, and how long the rest takes."""

import os
from pathlib import Path

import pytest

import compactor
from compactor.api.progress import LEAST_SECONDS, paced
from compactor.telemetry.meter import Meter
from tests.support import extras


def test_rate_and_time_left() -> None:
    """Of what was done since the work began; what comes fast is not all shown, but the end is."""
    told: list[str] = []
    seconds, meter = [50.0], Meter()
    with paced(meter, "comparing", told.append, clock=lambda: seconds[0]), meter.work("byte", 4_000_000_000):
        for seconds[0], stored_bytes in [(60.0, 999_000_000), (60.0 + LEAST_SECONDS / 2, 1_000_000), (60.5, 0)]:
            meter.add("byte", stored_bytes)
        assert list(meter.each("manifest", "abc")) == ["a", "b", "c"]  # within the other work
        meter.add("byte", 3_000_000_000)
    assert told == [
        "comparing 24 %: 999.0 MB of 4.0 GB, 99.9 MB/s, 30 s left",
        "comparing 25 %: 1.0 GB of 4.0 GB, 95.2 MB/s, 32 s left",
        "comparing 100 %: 4.0 GB of 4.0 GB, 381.0 MB/s, 0 s left",
    ]


@pytest.mark.parametrize(
    ("number", "total", "seconds", "expected"),
    [
        (1, None, 1.0, "checking: 1 manifest, 1/s"),
        (3_000, None, 2.0, "checking: 3,000 manifests, 1,500/s"),
        (1, None, 40.0, "checking: 1 manifest, 1.5/min"),
        (30, 90, 600.0, "checking 33 %: 30 of 90 manifests, 3.0/min, 20 min left"),
        (2, 1, 1.0, "checking 100 %: 2 of 1 manifest, 2/s, 0 s left"),
    ],
)
def test_words_of_a_pace(number: int, total: int | None, seconds: float, expected: str) -> None:
    """Slow work has a rate by the minute; without a total there is no time left."""
    told: list[str] = []
    now, meter = [0.0], Meter()
    with paced(meter, "checking", told.append, clock=lambda: now[0]), meter.work("manifest", total):
        now[0] = seconds
        meter.add("manifest", number)
        assert told == [expected]


def test_date_that_work_has_reached() -> None:
    """Work by date shows it, until other work begins."""
    told: list[str] = []
    now, meter = [0.0], Meter()
    with paced(meter, "planning", told.append, clock=lambda: now[0]):
        for date in ("2026-01-02", ""):
            with meter.work("file", 2):
                meter.reached = meter.reached or date
                now[0] += 1.0
                meter.add("file", 2)
    assert told == [
        "planning 100 %: 2 of 2 files, 2/s, 0 s left, at 2026-01-02",
        "planning 100 %: 2 of 2 files, 2/s, 0 s left",
    ]


@extras.NATIVE.needed
@pytest.mark.parametrize("deep", [False, True])
def test_all_input_is_told_of(tmp_path: Path, deep: bool) -> None:
    """What a comparison expects is what it reads; without one, nothing is told of bytes."""
    source, rows = tmp_path / "raw", tmp_path / "rows"
    source.mkdir()
    for name in "ab":
        (source / f"2026-01-0{ord(name) - 96}.ndjson").write_text('{"id": 1}\n' * 1_000)
        os.utime(source / f"2026-01-0{ord(name) - 96}.ndjson", (1, 1))
    compactor.compact(str(source), str(rows), engine="native")
    told: list[compactor.Progress] = []
    compactor.verify(str(rows), deep=deep, progress=told.append)
    done = "20.0 kB of 20.0 kB" if deep else "2 of 2 manifests"
    assert told[-1].message.startswith(f"verifying 100 %: {done}, ")

"""One of ten streams floods the job that it shares with the others: everything is exact, and the others go on."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil")

from bench.streams.report import OTHERS, costs, faults, fields, together
from bench.streams.run import FLOOD, run_streams
from bench.streams.traffic import FLOODING, Load

MOST_TIMES_SLOWER = 6
"""Far above what `make bench-streams` requires: this test also runs on a machine that does other things."""


@pytest.mark.large
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("source", ["listing", "spark"])
def test_a_flood_in_one_stream(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In real processes every manifest is done once, the totals add up, and no other stream waits for the flood."""
    settings = {
        "convert": {"engine": "native"},
        "stream": {"source": source, "trigger_interval_seconds": 5},
        "metrics": {"sink": "log"},
    }
    result = run_streams(tmp_path, Load(seconds=30, every_seconds=6, flood=200), settings, lambda _: None)
    with capsys.disabled():
        sys.stdout.write(f"\n{source}: {dict(fields(result))}\n")
    assert [*faults(result)] == []
    assert sum((each.stream, each.phase) == (FLOODING, FLOOD) for each in result.deliveries) >= 200
    assert [each.stream for each in costs(result)] == [*OTHERS]
    assert together(result).ratio < MOST_TIMES_SLOWER

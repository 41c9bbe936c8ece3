"""What is shown while a verification compares values: how much, how fast, and how long it will take."""

import os
from pathlib import Path

import pytest

import compactor
from compactor.api.progress import LEAST_SECONDS, VerifyProgress
from tests.support import extras


def test_rate_and_time_left() -> None:
    """Of the bytes that were compared since that began; pieces that come fast are not all shown."""
    shown: list[str] = []
    seconds = [0.0]
    progress = VerifyProgress(shown.append, lambda: seconds[0])
    seconds[0] = 50.0
    progress.expect(4_000_000_000)
    for seconds[0], stored_bytes in [(60.0, 999_000_000), (60.0 + LEAST_SECONDS / 2, 1_000_000), (60.5, 0)]:
        progress.read(stored_bytes)
    progress.on_manifest()
    assert shown == [
        "compared 999.0 MB of 4.0 GB at 99.9 MB/s, 30 s left",
        "compared 1.0 GB of 4.0 GB at 95.2 MB/s, 32 s left",
        "verified 1 manifest, compared 1.0 GB of 4.0 GB at 95.2 MB/s, 32 s left",
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
    last = told[-1].message
    assert last.startswith("verified 2 manifests, compared 20.0 kB of 20.0 kB at " if deep else "verified 2 manifests")
    assert deep or "compared" not in last

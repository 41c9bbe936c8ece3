"""The sizes of the files that the native engine makes, once earlier commits have taught what output to expect."""

import random
from itertools import cycle, islice

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.engines.native import bin_task
from compactor.ledger.sizing import is_right_sized
from compactor.wiring import engines, streaming
from tests.support import extras
from tests.support.harness import Harness, commit_of_ratio

extras.NATIVE.need()

MIB = 1024 * 1024
TARGET = 8 * MIB
_DIGITS = random.Random(7)
LINES = [b'{"a":"%0800x"}\n' % _DIGITS.getrandbits(3200) for _ in range(3000)]
"""They are too many for a dictionary, and too far apart to be compressed."""


def sizes(targets: list[float], *, taught: float = 1.0) -> list[int]:
    """Compact files of these sizes, whose output is as long as they are; returns the sizes of the output files.

    Args:
        targets: The sizes of the input files, in target sizes.
        taught: The ratio that earlier commits had.
    """
    harness = Harness(output={"target_file_bytes": TARGET})
    lines = [int(size * TARGET / len(LINES[0])) for size in targets]
    files = [b"".join(islice(cycle(LINES), each)) for each in lines]
    app = harness.app()
    app.ledger.remember(commit_of_ratio(taught))
    batch = streaming.scheduler(app, engines.native_engine(app, ThreadBinWorkers(app.store))).run(
        [harness.deliver("m", *files)]
    )
    assert batch.failures == {}
    return [file.size_bytes for file in harness.commit("m").outputs]


@pytest.mark.parametrize(
    ("targets", "taught"),
    [
        pytest.param([0.19] * 13, 1.0, id="2.47 targets in small files, of which one bin gets more than another"),
        pytest.param([0.55] * 5, 1.0, id="2.75 targets in large files, of which a bin gets one or two"),
        pytest.param([1.43, 0.9, 0.9], 1.0, id="a file that can be neither one nor two of the right size"),
        pytest.param([0.2] * 10, 0.7, id="more output than earlier commits had"),
    ],
)
def test_all_output_is_in_files_of_the_right_size(targets: list[float], taught: float, monkeypatch) -> None:
    """Whatever the number and the sizes of the input files are."""
    monkeypatch.setattr(bin_task, "BLOCK_BYTES", MIB // 8)  # as small for the target as it usually is
    found = sizes(targets, taught=taught)
    assert all(is_right_sized(size, TARGET) for size in found), [f"{size / TARGET:.2f}" for size in found]

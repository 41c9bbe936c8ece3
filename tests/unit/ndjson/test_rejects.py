"""The spool of rejects: what it keeps of too many, and what it only counts."""

from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from compactor.ndjson.files import rejects
from compactor.ndjson.files.rejects import RejectSpool, RejectsWriter
from compactor.ndjson.files.scratch import Scratch
from compactor.ndjson.lines import Reject, RejectLimits

PIECES = st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4)


@given(st.lists(PIECES, max_size=12), st.integers(1, 10), st.integers(1, 40), st.integers(1, 5))
def test_the_first_whole_lines_are_kept_and_all_others_counted(tmp_path_factory, lines, max_lines, max_bytes, batch):
    """Whatever their pieces and bounds: kept and counted lines are all lines, and no line is kept in part."""
    path = Path(tmp_path_factory.mktemp("rejects")) / "r.parquet"
    scratch = Scratch(1 << 30)
    spool = RejectSpool("m", "/raw/a", RejectLimits(max_lines, max_bytes, "keep_rows"), scratch)
    total = kept = 0
    for number, pieces in enumerate(lines, 1):
        total += sum(map(len, pieces))
        kept += number <= max_lines and total <= max_bytes and kept == number - 1
    original, rejects._BATCH_ROWS = rejects._BATCH_ROWS, batch
    try:
        for number, pieces in enumerate(lines, 1):
            for piece in pieces:
                spool.add(Reject(number, 0, "invalid_json", piece))
    finally:
        rejects._BATCH_ROWS = original
    assert spool.unkept.total() == len(lines) - kept
    assert spool.kept_rows == sum(map(len, lines[:kept]))
    with RejectsWriter(path) as writer:
        spool.move_to(writer)
    found = pq.read_table(path).to_pylist() if writer.rows else []
    assert [(row["line_number"], row["raw"]) for row in found] == [
        (number, piece) for number, pieces in enumerate(lines[:kept], 1) for piece in pieces
    ]
    scratch.take(1 << 30)  # all was given back

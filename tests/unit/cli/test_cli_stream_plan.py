"""What `compactor plan` says of a stream."""

import pytest

from compactor.cli.stream_plan import show_stream
from compactor.manifests.kinesis.stream_plan import Gap, StreamPlan


def test_everything_that_a_person_has_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    made = StreamPlan(
        lines=1200,
        gaps=[Gap("shardId-1", "0", "7"), Gap("shardId-2", "7", "")],
        strays=3,
        closed=2,
        waiting=1,
        has_more=True,
        former_ids=["one"],
        behind_seconds=90.0,
    )
    show_stream(made, dry_run=False)
    assert capsys.readouterr().out.splitlines() == [
        "Landed 1,200 lines, up to 1 min 30 s behind the newest records",
        "Records may be lost to retention: shardId-1: from its beginning, before 7",
        "Records may be lost to retention: shardId-2: after sequence number 7, to its end, or its next record",
        "Ended: 2 shards",
        "Wait for the shards that they come from: 1 shard",
        "More is left for the next plan; run the command again",
        "Left out: 3 packed records of other shards, as kinesis.sources asks for",
        "Another stream had this name, with the id one: what was not landed of it is gone",
    ]


def test_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a stream without records, in a dry run, and of files."""
    show_stream(StreamPlan(), dry_run=True)
    show_stream(None, dry_run=False)
    assert capsys.readouterr().out == "Would land 0 lines\n"

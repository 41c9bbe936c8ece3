"""What `compactor plan` says of a topic or stream."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compactor.cli.commands.job import plan
from compactor.cli.entry import compactor as command
from compactor.cli.plan_result import landed_log, show_log
from compactor.core.errors import RecordUnreadable
from compactor.core.logs.names import LogGap, LogName
from compactor.sources.landing.lander import LandingResult
from tests.support.settings_files import write_settings

TOPIC, STREAM = LogName("kafka", "main", "events"), LogName("kinesis", "main", "events")


def test_everything_that_a_person_has_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    made = LandingResult(
        lines=1200,
        gaps=[LogGap(STREAM, "shardId-1", 0, 7), LogGap(STREAM, "s-2", 7), LogGap(TOPIC, "0", 3, 10)],
        tombstones=2,
        strays=3,
        closed=2,
        waiting=1,
        has_more=True,
        former_ids=["one"],
        behind_seconds=90.0,
    )
    show_log(landed_log(made), dry_run=False)
    assert capsys.readouterr().out.splitlines() == [
        "Landed 1,200 lines, up to 1 min 30 s behind the newest records",
        "Records may be lost to retention: partition shardId-1, from the beginning, before 7",
        "Records may be lost to retention: partition s-2, after sequence number 7, to its end, or its next record",
        "Records are lost to retention: partition 0, offsets 3 to 8",
        "Without a value, so without a line: 2 records",
        "Ended: 2 shards",
        "Waiting for their parent shards: 1 shard",
        "More is left for the next plan; run the command again",
        "Skipped: 3 packed records of other shards, as configured in kinesis.sources",
        "A deleted log with the id one had this name: its remaining records are lost",
    ]


def test_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a log without records, in a dry run."""
    show_log(landed_log(LandingResult()), dry_run=True)
    assert capsys.readouterr().out == "Would land 0 lines\n"


def test_what_cannot_be_finished_is_how_the_command_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all that was done in spite of it."""
    made = LandingResult(troubles=[RecordUnreadable("s3://lake/draft.json: expected the draft of a manifest")])
    monkeypatch.setattr(plan, "plan_log", lambda *_, **__: made)
    clusters = {"main": {"bootstrap.servers": "none:1"}}
    settings = write_settings(tmp_path, input={"allowed_prefixes": ["kafka://main"]}, kafka={"clusters": clusters})
    words = ["--config", str(settings), "plan", str(TOPIC)]
    shown = CliRunner().invoke(command, words)
    assert "Wrote 0 manifests" in shown.stdout
    assert "s3://lake/draft.json" in shown.stderr
    assert "restore an earlier version" in shown.stderr
    printed = CliRunner().invoke(command, [*words, "--json"])
    assert len(json.loads(printed.stdout)["log"]["troubles"]) == 1
    assert shown.exit_code == printed.exit_code != 0

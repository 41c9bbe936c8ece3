"""What `compactor plan` says of a topic and of a stream."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compactor.cli.commands import plan
from compactor.cli.entry import compactor as command
from compactor.cli.plan_result import result_of, show_log
from compactor.core.errors import RecordUnreadable
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.manifests.kafka.planner import TopicPlan
from compactor.manifests.kinesis.stream_plan import Gap, StreamPlan
from tests.support.settings_files import write_settings

TOPIC = Topic("main", "events")

OF_TOPIC = TopicPlan(
    removed=[KafkaRange(TOPIC, 0, 3, 9)],
    cut_off={1: (4, 7)},
    former_ids=["one"],
    troubles=[RecordUnreadable("the first"), RecordUnreadable("the second")],
)

OF_STREAM = StreamPlan(
    lines=1200,
    gaps=[Gap("shardId-1", "0", "7"), Gap("shardId-2", "7", "")],
    strays=3,
    closed=2,
    waiting=1,
    has_more=True,
    former_ids=["one"],
    behind_seconds=90.0,
)


@pytest.mark.parametrize(
    ("made", "dry_run", "lines"),
    [
        (
            OF_TOPIC,
            False,
            f"""\
Removed by retention before it was planned: {TOPIC}/0?from=3&to=9 (6 offsets); it is quarantined
Partition 1 ends at offset 4, and is planned to 7: its log was cut off
Not finished: the second
Another topic had this name, with the id one: what was not planned of it is gone
""",
        ),
        (
            OF_STREAM,
            False,
            """\
Landed 1,200 lines, up to 1 min 30 s behind the newest records
Records may be lost to retention: shardId-1: from its beginning, before 7
Records may be lost to retention: shardId-2: after sequence number 7, to its end, or its next record
Ended: 2 shards
Wait for the shards that they come from: 1 shard
More is left for the next plan; run the command again
Left out: 3 packed records of other shards, as kinesis.sources asks for
Another stream had this name, with the id one: what was not landed of it is gone
""",
        ),
        (StreamPlan(), True, "Would land 0 lines\n"),
        (None, False, ""),
    ],
    ids=("topic", "stream", "a stream without records", "files"),
)
def test_everything_that_a_person_has_to_know(
    made: TopicPlan | StreamPlan | None, dry_run: bool, lines: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each; the first trouble is how the command ends."""
    show_log(result_of(OF_TOPIC.totals, None, made, dry_run=dry_run))
    assert capsys.readouterr().out == lines


def test_what_cannot_be_finished_is_how_the_command_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all that was done in spite of it."""
    made = TopicPlan(troubles=[RecordUnreadable("s3://lake/draft.json: expected the draft of a manifest")])
    monkeypatch.setattr(plan, "plan_topic", lambda *_, **__: made)
    clusters = {"main": {"bootstrap.servers": "none:1"}}
    settings = write_settings(tmp_path, input={"allowed_prefixes": ["kafka://main"]}, kafka={"clusters": clusters})
    words = ["--config", str(settings), "plan", str(TOPIC)]
    shown = CliRunner().invoke(command, words)
    assert "Wrote 0 manifests" in shown.stdout
    assert "s3://lake/draft.json" in shown.stderr
    assert "restore an earlier version" in shown.stderr
    printed = CliRunner().invoke(command, [*words, "--json"])
    assert len(json.loads(printed.stdout)["topic"]["troubles"]) == 1
    assert shown.exit_code == printed.exit_code != 0

"""What `compactor plan` says of a topic."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compactor.cli.commands import plan
from compactor.cli.entry import compactor as command
from compactor.cli.topic_plan import show_topic
from compactor.core.errors import RecordUnreadable
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.manifests.kafka.planner import TopicPlan
from tests.support.settings_files import write_settings

TOPIC = Topic("main", "events")


def test_everything_that_a_person_has_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each; the first trouble is how the command ends."""
    made = TopicPlan(
        removed=[KafkaRange(TOPIC, 0, 3, 9)],
        cut_off={1: (4, 7)},
        former_ids=["one"],
        troubles=[RecordUnreadable("the first"), RecordUnreadable("the second")],
    )
    show_topic(made)
    assert capsys.readouterr().out.splitlines() == [
        f"Removed by retention before it was planned: {TOPIC}/0?from=3&to=9 (6 offsets); it is quarantined",
        "Partition 1 ends at offset 4, and is planned to 7: its log was cut off",
        "Not finished: the second",
        "Another topic had this name, with the id one: what was not planned of it is gone",
    ]


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

"""The part of `compactor plan` that plans a topic of Kafka."""

from typing import Any

from compactor.cli.ui.terminal import echo
from compactor.core.kafka.ranges import Topic
from compactor.core.text.formatting import count
from compactor.manifests.kafka.planner import TopicPlan
from compactor.telemetry.error_text import described
from compactor.wiring.job.app import App


def plan_topic(app: App, topic: Topic, max_manifests: int | None, *, dry_run: bool) -> TopicPlan:
    """Plan a topic. Without a bound, that of the settings holds."""
    most = max_manifests or app.settings.builder.max_manifests_per_plan
    return app.kafka_planner.plan(topic, max_manifests=most, dry_run=dry_run)


def topic_document(made: TopicPlan | None) -> dict[str, Any] | None:
    """What `--json` adds for a topic."""
    if made is None:
        return None
    ends = sorted(made.cut_off.items())
    cut_off = [{"partition": each, "end": end, "planned_to": head} for each, (end, head) in ends]
    troubles = [described(each) for each in made.troubles]
    removed = [str(each) for each in made.removed]
    return {"removed": removed, "cut_off": cut_off, "former_ids": made.former_ids, "troubles": troubles}


def show_topic(made: TopicPlan | None) -> None:
    """Print what a person has to know of a topic."""
    if made is None:
        return
    for each in made.removed:
        echo(f"Removed by retention before it was planned: {each} ({count(each.offsets, 'offset')}); it is quarantined")
    for partition, (end, head) in sorted(made.cut_off.items()):
        echo(f"Partition {partition} ends at offset {end:,}, and is planned to {head:,}: its log was cut off")
    for trouble in made.troubles[1:]:  # the command ends with the first one
        echo(f"Not finished: {described(trouble)}")
    for former in made.former_ids:
        echo(f"Another topic had this name, with the id {former}: what was not planned of it is gone")

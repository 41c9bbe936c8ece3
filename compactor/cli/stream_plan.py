"""The part of `compactor plan` that plans a stream of Kinesis."""

from dataclasses import asdict
from typing import Any

from compactor.cli.ui.terminal import echo
from compactor.core.kinesis.places import KinesisStream
from compactor.core.ports import FLUSH_SECONDS
from compactor.core.text.formatting import count, duration
from compactor.manifests.kinesis.stream_plan import StreamPlan
from compactor.telemetry.error_text import described
from compactor.wiring.job.app import App


def plan_stream(app: App, stream: KinesisStream, max_manifests: int | None, *, dry_run: bool) -> StreamPlan:
    """Land and plan a stream. Without a bound, that of the settings holds."""
    most = max_manifests or app.settings.builder.max_manifests_per_plan
    made = app.kinesis_planner.plan(stream, max_manifests=most, dry_run=dry_run)
    app.metrics.flush(FLUSH_SECONDS)
    return made


def stream_document(made: StreamPlan | None) -> dict[str, Any] | None:
    """What `--json` adds for a stream."""
    if made is None:
        return None
    counts = {
        "lines": made.lines,
        "strays": made.strays,
        "closed": made.closed,
        "waiting": made.waiting,
        "has_more": made.has_more,
    }
    gaps, troubles = [asdict(each) for each in made.gaps], [described(each) for each in made.troubles]
    about = {"behind_seconds": made.behind_seconds, "former_ids": made.former_ids, "troubles": troubles}
    return {**counts, "gaps": gaps, **about}


def show_stream(made: StreamPlan | None, *, dry_run: bool) -> None:
    """Print what a person has to know of a stream."""
    if made is None:
        return
    behind = "" if made.behind_seconds is None else f", up to {duration(made.behind_seconds)} behind the newest records"
    echo(f"{'Would land' if dry_run else 'Landed'} {count(made.lines, 'line')}{behind}")
    for gap in made.gaps:
        echo(f"Records may be lost to retention: {gap}")
    if made.closed:
        echo(f"Ended: {count(made.closed, 'shard')}")
    if made.waiting:
        echo(f"Wait for the shards that they come from: {count(made.waiting, 'shard')}")
    if made.has_more:
        echo("More is left for the next plan; run the command again")
    if made.strays:
        echo(f"Left out: {count(made.strays, 'packed record')} of other shards, as kinesis.sources asks for")
    for trouble in made.troubles[1:]:  # the command ends with the first one
        echo(f"Not landed whole: {described(trouble)}")
    for former in made.former_ids:
        echo(f"Another stream had this name, with the id {former}: what was not landed of it is gone")

"""`compactor cost`: the cost of a load at list prices, and of the latest commits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import click

from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.ui.cost_screen import show_cost
from compactor.cli.ui.output import print_result
from compactor.core.documents.document import parsed
from compactor.core.documents.records import RecentCommit
from compactor.core.errors import CompactorError, OperatorError, RecordUnreadable
from compactor.core.rules.sharding import MAX_SHARDS
from compactor.cost.cost import REFERENCE_RATIO, CostReport, Deployment, Shape, estimate
from compactor.cost.measured_cost import (
    MeasuredCost,
    StreamCost,
    common_commits,
    measured_cost,
    stream_costs,
    together,
)
from compactor.cost.price_table import REGIONS
from compactor.cost.prices import (
    DPU_PER_WORKER,
    FIRST_REGION,
    GLUE_VERSIONS,
    HOUR_SECONDS,
    SHIPPED,
    Load,
    PricedJob,
    prices_of,
)
from compactor.cost.topic_cost import Service, TopicInput
from compactor.cost.worker_needs import BenchResult, needed
from compactor.engines.engine import EngineName
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ledger.sizing import stored_ratio
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import measured_in
from compactor.settings.sections import Builder, Control, Convert, Output, Stream
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice

GLUE_LEAST_SECONDS = 60.0
"""What Glue bills at least for a run."""

LAST_BENCH = Path(".bench/last.json")  # the result of `python -m bench`, below the folder that it ran in


@click.command("cost", context_settings={"show_default": True})
@destination_argument
@click.option(
    "--files-per-hour", type=FiniteRange(0, 1e12, min_open=True), default=200_000, help="Input files an hour."
)
@click.option("--file-bytes", type=click.IntRange(min=1), default=3_670_016, help="Size of a file.")
@click.option("--from-ledger", is_flag=True, help="Take the load from the ledger, and show what it cost.")
@click.option("--days", type=FiniteRange(0, 3650, min_open=True), default=7, help="--from-ledger: the last N days.")
@click.option("--worker-type", type=click.Choice(DPU_PER_WORKER), default=SHIPPED.worker_type, help="Glue worker type.")
@click.option("--workers", type=click.IntRange(min=2), default=SHIPPED.workers, help="All workers; one is the driver.")
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    help="Jobs that share the manifests and these workers; default: control.shards of the settings, else 1.",
)
@click.option("--glue-version", type=click.Choice(GLUE_VERSIONS), default=SHIPPED.glue_version, help="Glue version.")
@click.option("--region", help=f"Take prices of this region; default: aws.region of the settings, else {FIRST_REGION}.")
@click.option("--input-days", type=FiniteRange(0), default=30, help="Days for which input is kept.")
@click.option("--output-days", type=FiniteRange(0), default=365, help="Days for which output is kept.")
@click.option("--customer-key", is_flag=True, help="Add a key of yours, as KmsKey of the deployment.")
@click.option("--event-bridge", is_flag=True, help="Add events by EventBridge, as of a bucket that exists already.")
@click.option(
    "--topic",
    type=click.Choice(get_args(Service)),
    help="Take input from a topic of Amazon MSK or a stream of Kinesis; the load is what the files would have.",
)
@click.option("--partitions", type=click.IntRange(min=1), default=24, help="--topic: its partitions or shards.")
@click.option("--record-bytes", type=click.IntRange(min=1), default=1000, help="--topic: mean size of a record.")
@click.option("--retention-hours", type=FiniteRange(0), default=24, help="--topic: hours for which it has records.")
@click.option("--brokers", type=click.IntRange(min=1), default=3, help="--topic msk: number of brokers.")
@click.option(
    "--broker-dollars",
    type=FiniteRange(0),
    help="--topic msk: dollars of a broker-hour; default: a kafka.m5.large.",
)
@click.option("--fan-out", is_flag=True, help="--topic kinesis: give the compactor enhanced fan-out.")
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    help="Default: the engine of the settings, else native if it is installed.",
)
@click.option(
    "--bench",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Result of `python -m bench`; default: {LAST_BENCH}, if it exists.",
)
@json_option(CostReport)
@stream_option
@body
def cost(
    invocation: Invocation,
    *,
    files_per_hour: float,
    file_bytes: int,
    from_ledger: bool,
    days: float,
    engine: EngineName | None,
    bench: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the cost of a load; with settings, also show that of the latest commits.

    Prices are list prices: check them before quoting. The named workers are taken to be enough. With the result of a
    benchmark, the command shows how many workers of each type the load needs at that speed.

    --from-ledger reads all that was compacted in the last days, and prices it: the workers around the clock, and the
    other services as an estimate for this load. Without --stream, that is the cost of all streams and jobs, divided by
    the bytes of each stream.
    """
    result = _bench_result(bench or LAST_BENCH) if bench or LAST_BENCH.is_file() else None
    if from_ledger and not invocation.has_settings:
        raise click.UsageError("--from-ledger needs settings: expected --config, DST or COMPACTOR_CONFIG")
    settings = invocation.deployment() if invocation.has_settings else None
    jobs = len(settings.jobs) if settings else 1
    job = PricedJob(options["worker_type"], options["workers"] * jobs, options["glue_version"])
    region = options["region"] or (settings.aws.region if settings else "") or FIRST_REGION
    prices = prices_of(region)
    hourly = job.price_in(prices).dollars_per_hour(job.dpu)
    apps = {each.name: App(each) for each in (settings.streams or (settings,))} if settings else {}
    recent = common_commits({name: each.ledger.recent() for name, each in apps.items()}, RECENT_SLOTS)
    all_recent = [commit for commits in recent.values() for commit in commits]
    pasts = past_costs(apps, days, hourly) if from_ledger else {}
    past = together([*pasts.values()], hourly) if pasts else None
    load = past.load if past else Load(files_per_hour, file_bytes)
    found = estimate(
        load,
        job,
        shape_of(settings, engine, stored_ratio(all_recent), options["shards"]),
        _deployment(options),
        prices,
        _topic(load, options),
    )
    measured = past or measured_cost(all_recent, hourly)
    in_all = found.dollars_per_hour * past.elapsed_seconds / HOUR_SECONDS if past else None
    parts = _parts(settings, pasts or _measured(recent, hourly), in_all, measured)
    report = CostReport(
        estimate=found,
        region=region,
        has_prices_of_region=region in REGIONS,
        prices=prices,
        jobs=jobs,
        measured=measured,
        streams=parts,
        dollars_of_ledger=in_all,
        needed=needed(found.load, result) if result else None,
    )
    print_result(report, show_cost, as_json=as_json)


def _topic(load: Load, options: Mapping[str, Any]) -> TopicInput | None:
    topic = options["topic"]
    for name, of in (("fan_out", "kinesis"), ("broker_dollars", "msk")):
        if options[name] not in {None, False} and topic != of:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --topic {of}")
    if topic is None:
        return None
    return TopicInput(
        topic,
        load.bytes_per_hour,
        record_bytes=options["record_bytes"],
        partitions=options["partitions"],
        brokers=options["brokers"],
        broker_dollars=options["broker_dollars"],
        retention_hours=options["retention_hours"],
        has_fan_out=options["fan_out"],
    )


def _measured(recent: Mapping[str, Sequence[RecentCommit]], hourly: float) -> dict[str, MeasuredCost]:
    return {name: found for name, commits in recent.items() if (found := measured_cost(commits, hourly))}


def _parts(
    settings: Settings | None, found: Mapping[str, MeasuredCost], in_all: float | None, measured: MeasuredCost | None
) -> list[StreamCost]:
    """What each stream has of the cost; none without streams."""
    if settings is None or not settings.streams or measured is None:
        return []
    return stream_costs(found, measured.dollars_elapsed if in_all is None else in_all)


def past_costs(apps: Mapping[str, App], days: float, dollars_per_hour: float) -> dict[str, MeasuredCost]:
    """What each stream compacted in the last days, all of it, on workers of this price around the clock.

    Raises:
        OperatorError: None compacted anything.
    """
    now = next(iter(apps.values())).clock.now()
    period = Period(now - timedelta(days=days), now)
    found = {name: past_cost(app, period, dollars_per_hour) for name, app in apps.items()}
    if not any(each.input_bytes for each in found.values()):
        where = ", ".join(app.layout.state for app in apps.values())
        raise OperatorError(f"{where}: nothing was compacted in the last {days:g} days -> expected --days N")
    return {name: each for name, each in found.items() if each.input_bytes}


def past_cost(app: App, period: Period, dollars_per_hour: float) -> MeasuredCost:
    """What was compacted in a period, all of it, on workers of this price around the clock."""
    target_file_bytes = app.settings.output.target_file_bytes
    found = measured_in(
        read_figures(app.state, app.registry, period, target_file_bytes=target_file_bytes), dollars_per_hour
    )
    return replace(found, at_work_seconds=max(found.at_work_seconds, GLUE_LEAST_SECONDS))


def _deployment(options: Mapping[str, Any]) -> Deployment:
    return Deployment(
        input_days=options["input_days"],
        output_days=options["output_days"],
        has_key=options["customer_key"],
        uses_event_bridge=options["event_bridge"],
    )


def _bench_result(path: Path) -> BenchResult:
    expected = "what `python -m bench` writes to .bench/last.json"
    try:
        return parsed(BenchResult.model_validate_json, path.read_bytes(), str(path), expected)
    except OSError as exc:
        raise CompactorError(f"{path}: {exc.strerror}; expected {expected}") from exc
    except RecordUnreadable as exc:  # whose next move is for records of the ledger
        raise CompactorError(str(exc)) from exc


def shape_of(
    settings: Settings | None, engine: EngineName | None, ratio: float | None, shards: int | None = None
) -> Shape:
    """How settings, or the defaults, divide the work on an engine, or theirs; the usual ratio where none is known."""
    convert, builder = (settings.convert, settings.builder) if settings else (Convert(), Builder())
    output, stream = (settings.output, settings.stream) if settings else (Output(), Stream())
    control = settings.control if settings else Control()
    return Shape(
        # Not `installed_engine`: the wheel that the job has need not be installed here.
        engine=engine or engine_choice(convert).name,
        target_manifest_bytes=builder.target_manifest_bytes,
        target_file_bytes=output.target_file_bytes,
        max_wait_seconds=builder.max_wait_seconds,
        trigger_interval_seconds=stream.trigger_interval_seconds,
        ratio=REFERENCE_RATIO if ratio is None else ratio,
        shards=shards or control.shards,
        in_place=_is_in_place(settings, engine or engine_choice(convert).name),
    )


def _is_in_place(settings: Settings | None, engine: EngineName) -> bool:
    """Whether output files are written in place: the estimate is for a job on S3."""
    return bool(settings and settings.has_table and engine == "native")

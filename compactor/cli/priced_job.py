"""The job, deployment and topic priced by the cost commands: options and estimate."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

import click

from compactor.cli.parameters import FiniteRange
from compactor.core.rules.sharding import MAX_SHARDS
from compactor.cost.cost import (
    REFERENCE_RATIO,
    SMALL_WAIT_SECONDS,
    SMALL_WINDOW_SECONDS,
    WINDOW_SECONDS,
    Deployment,
    Estimate,
    Shape,
    estimate,
)
from compactor.cost.prices import (
    DPU_PER_WORKER,
    FIRST_REGION,
    GLUE_VERSIONS,
    SHIPPED,
    Load,
    PricedJob,
    Runtime,
    prices_of,
)
from compactor.cost.topic_cost import Service, TopicInput
from compactor.engines.engine import EngineName
from compactor.settings.sections import Builder, Control, Convert, Output, Stream
from compactor.settings.settings import Settings
from compactor.wiring.engine_choice import engine_choice

_RUNTIMES: dict[str, Runtime] = {"Glue": "glue", "EMR Serverless": "emr", "ECS": "ecs"}
_TASK_SIZES = tuple(f"{vcpu}x{gb}" for vcpu, gb in ((0.25, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32)))

_OPTIONS = (
    click.option(
        "--runtime",
        type=click.Choice(get_args(Runtime)),
        help="What runs the job; default: as in the settings, else glue. machine: one of your own.",
    ),
    click.option(
        "--task-size",
        type=click.Choice(_TASK_SIZES),
        default="2x4",
        help="vCPU and GB of a task on ecs or of a machine; there is one for each shard.",
    ),
    click.option(
        "--worker-type", type=click.Choice(DPU_PER_WORKER), default=SHIPPED.worker_type, help="Glue worker type."
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=2),
        default=SHIPPED.workers,
        help="Number of workers, including the driver.",
    ),
    click.option(
        "--shards",
        type=click.IntRange(1, MAX_SHARDS),
        help="Number of jobs that share the manifests and these workers; default: control.shards in the settings, "
        "else 1.",
    ),
    click.option(
        "--glue-version", type=click.Choice(GLUE_VERSIONS), default=SHIPPED.glue_version, help="Glue version."
    ),
    click.option(
        "--region", help=f"Use the prices of this region; default: aws.region in the settings, else {FIRST_REGION}."
    ),
    click.option("--input-days", type=FiniteRange(0), default=30, help="Keep input for this many days."),
    click.option("--output-days", type=FiniteRange(0), default=365, help="Keep output for this many days."),
    click.option("--customer-key", is_flag=True, help="Add your own key, as KmsKey in the deployment."),
    click.option("--event-bridge", is_flag=True, help="Add EventBridge events, as for an existing bucket."),
    click.option(
        "--small",
        is_flag=True,
        help=f"Deploy for a small stream: BuilderWindowSeconds {SMALL_WINDOW_SECONDS:g}, builder.max_wait_seconds "
        f'{SMALL_WAIT_SECONDS:g}, metrics.detail "alarms", and stream.queue_url.',
    ),
    click.option(
        "--topic",
        type=click.Choice(get_args(Service)),
        help="Read input from an Amazon MSK topic or a Kinesis stream; the load is that of the files.",
    ),
    click.option(
        "--partitions", type=click.IntRange(min=1), default=24, help="--topic: number of partitions or shards."
    ),
    click.option("--record-bytes", type=click.IntRange(min=1), default=1000, help="--topic: mean record size."),
    click.option("--retention-hours", type=FiniteRange(0), default=24, help="--topic: retention of records, in hours."),
    click.option("--brokers", type=click.IntRange(min=1), default=3, help="--topic msk: number of brokers."),
    click.option(
        "--broker-dollars",
        type=FiniteRange(0),
        help="--topic msk: dollars per broker-hour; default: kafka.m5.large.",
    ),
    click.option("--fan-out", is_flag=True, help="--topic kinesis: use enhanced fan-out."),
    click.option(
        "--engine",
        type=click.Choice(get_args(EngineName)),
        help="Engine of the job; default: as in the settings, else native if installed.",
    ),
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the job, its deployment and a topic, used by `priced_load`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def priced_job(options: Mapping[str, Any], settings: Settings | None) -> PricedJob:
    """The workers of all jobs together."""
    jobs, runtime = len(settings.jobs) if settings else 1, _runtime(options, settings)
    kind, workers = options["worker_type"], options["workers"]
    if _lists(runtime):
        kind, workers = options["task_size"], options["shards"] or (settings.control.shards if settings else 1)
    return PricedJob(kind, workers * jobs, options["glue_version"], runtime=runtime)


def _runtime(options: Mapping[str, Any], settings: Settings | None) -> Runtime:
    return options["runtime"] or (_RUNTIMES[settings.service] if settings else "glue")


def _lists(runtime: Runtime) -> bool:
    return runtime in {"ecs", "machine"}


def region_of(options: Mapping[str, Any], settings: Settings | None) -> str:
    """The region of the prices."""
    return options["region"] or (settings.aws.region if settings else "") or FIRST_REGION


def priced_load(load: Load, options: Mapping[str, Any], settings: Settings | None, ratio: float | None) -> Estimate:
    """Estimate the cost of a load. `ratio` is Parquet bytes per input byte; None for the usual one.

    Raises:
        click.UsageError: An option conflicts with `--topic`.
    """
    shape, is_small = shape_of(settings, options["engine"], ratio, options["shards"]), options["small"]
    if is_small:
        shape = replace(shape, max_wait_seconds=SMALL_WAIT_SECONDS)
    return estimate(
        load,
        priced_job(options, settings),
        replace(shape, engine="native", lists=True) if _lists(_runtime(options, settings)) else shape,
        Deployment(
            input_days=options["input_days"],
            output_days=options["output_days"],
            has_key=options["customer_key"],
            uses_event_bridge=options["event_bridge"],
            window_seconds=SMALL_WINDOW_SECONDS if is_small else WINDOW_SECONDS,
            only_alarm_metrics=is_small or (settings is not None and settings.metrics.detail == "alarms"),
            has_manifest_queue=is_small or (settings is not None and bool(settings.stream.queue_url)),
        ),
        prices_of(region_of(options, settings)),
        _topic(load, options),
    )


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


def shape_of(
    settings: Settings | None, engine: EngineName | None, ratio: float | None, shards: int | None = None
) -> Shape:
    """How settings (or the defaults) divide the work on an engine (or theirs); with the usual ratio if unknown."""
    convert, builder = (settings.convert, settings.builder) if settings else (Convert(), Builder())
    output, stream = (settings.output, settings.stream) if settings else (Output(), Stream())
    control = settings.control if settings else Control()
    # Not `installed_engine`: the job's wheel may be missing here.
    name = engine or engine_choice(convert).name
    has_table = settings is not None and any(each.has_table for each in settings.streams or (settings,))
    return Shape(
        engine=name,
        target_manifest_bytes=builder.target_manifest_bytes,
        target_file_bytes=output.target_file_bytes,
        max_wait_seconds=builder.max_wait_seconds,
        trigger_interval_seconds=stream.trigger_interval_seconds,
        ratio=REFERENCE_RATIO if ratio is None else ratio,
        shards=shards or control.shards,
        in_place=has_table and name == "native",  # the estimate is for a job on S3
    )

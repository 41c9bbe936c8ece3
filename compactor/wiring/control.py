"""Builds the control plane from the settings."""

import os
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Unpack

from compactor.adapters.metrics_sinks import metrics_sink
from compactor.adapters.stores import StoreSpec
from compactor.control.gathering import Sources, of_shard
from compactor.control.notices import Notices
from compactor.control.plane import ControlPlane
from compactor.control.scaling import Scaling
from compactor.control.snapshot import JobRuns, Notifier, Queue
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.core.ports import Clock, MetricsSink
from compactor.settings.control_policy import Policy
from compactor.settings.settings import Settings
from compactor.wiring.app import App, Replacements, log_watch

ATTEMPTS = 3
"""The most attempts per request: the next check, a minute later, repeats it anyway."""

LONGEST_TIMEOUT_SECONDS = 10.0
"""The longest wait for a response, whatever the job's timeout: a check must end before the next one starts."""

_client = lru_cache(maxsize=8)(StoreSpec.client)  # creating one is slow


def control_planes(settings: Settings, shards: int) -> dict[str, ControlPlane]:
    """Each job's control plane, by name: the shared job's as so many shards, and those of single streams.

    They have no state and may be cached.
    """
    return {each.run_name: control_plane(each) for job in settings.jobs for each in job.scaled_to(shards)}


def scaling(app: App) -> Scaling:
    """How many shards the shared job has."""
    control = app.settings.control
    bounds = control.shards, app.settings.most_shards
    return Scaling(app.state, bounds, control.sla_seconds)


def control_plane(
    settings: Settings, *, job: JobRuns | None = None, notifier: Notifier | None = None, **ports: Unpack[Replacements]
) -> ControlPlane:
    """One job's control plane.

    Args:
        settings: Settings of the job, or of one of its shards.
        job: The job's runs; by default those from the settings.
        notifier: Sends messages to operators; by default the one from the settings.
        ports: Replacement ports; see `App`.
    """
    ports["store"] = ports.get("store") or _quick(App(settings).store_spec).open()
    app = App(settings, **ports)
    control, shard = settings.control, settings.shard
    is_first = shard is None or shard.number == 1
    # All streams share one queue, which the shared job's check watches.
    urls = ("", "") if settings.member or not is_first else (control.queue_url, control.dead_letter_queue_url)
    streams = {each.name: app.of_streams[each.name] for each in settings.sharing}
    name = control.job_name if shard is None else f"{control.job_name}, shard {shard}"
    return ControlPlane(
        sources=Sources(
            job=job or job_runs(app),
            runs=app.runs_of_shard,
            queue=_event_queue(app, urls[0]),
            dead_letter_queue=_event_queue(app, urls[1]),
            state=app.state,
            streams={name: each.state for name, each in streams.items()},
            shard=shard,
            # One shard lands the logs of all, which the first one's check watches.
            logs=[log_watch(each, may_note=True) for each in streams.values() or [app]] if is_first else [],
        ),
        policy=policy_of(settings),
        notices=Notices(
            notifier=notifier or _notifier(app),
            store=app.store,
            uri=of_shard(app.layout.notices, shard),
            job_name=name,
        ),
        metrics=ports.get("metrics") or _metrics(settings, app.clock),
        clock=app.clock,
        # A stream's waiting manifests are counted once, by the first shard's check.
        stream_metrics={name: _metrics(each.settings, app.clock) for name, each in streams.items()} if is_first else {},
        # The first shard's check emits the metrics of all shards together.
        sum_metrics=metrics_sink(settings.of_all_shards(), app.clock) if shard is not None and is_first else None,
    )


def policy_of(settings: Settings) -> Policy:
    """What a job's control plane goes by."""
    return Policy(**settings.control.model_dump(), service=settings.service)


def _metrics(settings: Settings, clock: Clock) -> MetricsSink:
    if settings.member is not None:
        return metrics_sink(settings.of_all_shards(), clock)
    return metrics_sink(settings, clock, sums_shards=settings.shard is None)


def job_runs(app: App) -> JobRuns:
    """The job's runs where the settings say."""
    if app.settings.service != "Glue":
        return started_job(app, _aws(app, "ecs" if app.settings.service == "ECS" else "emr-serverless"))
    from compactor.adapters.aws.glue_job import GlueJob  # noqa: PLC0415 - boto3 is slow to load

    return GlueJob(client=_aws(app, "glue"), name=app.settings.run_name)


def started_job(app: App, client: Any) -> JobRuns:
    """The job's runs on EMR Serverless or ECS, each of which reads this process's settings.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not a place on S3, which a run could read.
    """
    from compactor.adapters.aws.ecs_job import EcsJob  # noqa: PLC0415 - boto3 is slow to load
    from compactor.adapters.aws.emr_job import EmrJob  # noqa: PLC0415

    settings, place = app.settings, os.environ.get("COMPACTOR_CONFIG", "")
    if not is_s3(place):
        raise SettingsError(
            [f'COMPACTOR_CONFIG: "{place}" -> expected settings on S3, which the runs on {settings.service} also read']
        )

    def defined_at() -> datetime | None:
        found = app.store.stat(place)
        return found.modified_at if found else None

    run: dict[str, Any] = {
        "name": settings.run_name,
        "settings_place": place,
        "shard": settings.shard_text,
        "clock": app.clock,
        "defined_at": defined_at,
    }
    if settings.service == "ECS":
        return EcsJob(ecs=client, wanted=settings.ecs, **run)
    return EmrJob(emr=client, wanted=settings.emr, **run)


def _notifier(app: App) -> Notifier | None:
    arn = app.settings.control.topic_arn
    if not arn:
        return None
    from compactor.adapters.aws.messages import SnsTopic  # noqa: PLC0415 - boto3 is slow to load

    return SnsTopic(client=_aws(app, "sns"), arn=arn)


def _event_queue(app: App, url: str) -> Queue | None:
    if not url:
        return None
    from compactor.adapters.aws.messages import SqsQueue  # noqa: PLC0415 - boto3 is slow to load

    return SqsQueue(sqs=_aws(app, "sqs"), cloudwatch=_aws(app, "cloudwatch"), url=url)


def _aws(app: App, service: str) -> Any:
    return _client(replace(_quick(app.store_spec), attempts=ATTEMPTS), service)


def _quick(spec: StoreSpec) -> StoreSpec:
    return replace(spec, timeout_seconds=min(spec.timeout_seconds, LONGEST_TIMEOUT_SECONDS))

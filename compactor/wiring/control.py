"""Puts the control plane together from the settings."""

import os
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from compactor.adapters.metrics_sinks import metrics_sink
from compactor.adapters.stores import StoreSpec
from compactor.control.gathering import Sources, of_shard
from compactor.control.notices import Notices
from compactor.control.plane import ControlPlane
from compactor.control.snapshot import JobRuns, Notifier, Queue
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.core.ports import Clock, MetricsSink, ObjectStore
from compactor.settings.control_policy import Policy
from compactor.settings.settings import Settings
from compactor.wiring.components import Components


def emr_job(settings: Settings, store: ObjectStore, clock: Clock, client: Any) -> JobRuns:
    """The runs of the job, each of which reads the settings of this process.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` names no settings on S3, which a run could read.
    """
    from compactor.adapters.aws.emr_job import EmrJob  # noqa: PLC0415 - boto3 is slow to load

    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not is_s3(place):
        raise SettingsError(
            [f'COMPACTOR_CONFIG: "{place}" -> expected settings on S3, which the runs on EMR Serverless read, too']
        )

    def defined_at() -> datetime | None:
        found = store.stat(place)
        return found.modified_at if found else None

    return EmrJob(
        emr=client,
        name=settings.run_name,
        wanted=settings.emr,
        settings_place=place,
        shard=settings.stream.shard,
        clock=clock,
        defined_at=defined_at,
    )


ATTEMPTS = 3
"""The most times that a request is sent: the next check, a minute later, repeats it anyway."""

_client = lru_cache(maxsize=8)(StoreSpec.client)  # making one is slow

LONGEST_TIMEOUT_SECONDS = 10.0
"""The longest wait for an answer, whatever the job may wait: a check has to end before the next one starts."""


class ControlComponents(Components):
    """The components of the control plane, made as they are needed. They have no state and may be kept."""

    @cached_property
    def store_spec(self) -> StoreSpec:
        spec = super().store_spec
        return replace(spec, timeout_seconds=min(spec.timeout_seconds, LONGEST_TIMEOUT_SECONDS))

    @cached_property
    def job(self) -> JobRuns:
        if self.settings.control.target == "emr-serverless":
            return emr_job(self.settings, self.store, self.clock, self._client("emr-serverless"))
        from compactor.adapters.aws.glue_job import GlueJob  # noqa: PLC0415 - boto3 is slow to load

        return GlueJob(client=self._client("glue"), name=self.settings.run_name)

    @cached_property
    def notifier(self) -> Notifier | None:
        arn = self.settings.control.topic_arn
        if not arn:
            return None
        from compactor.adapters.aws.messages import SnsTopic  # noqa: PLC0415 - boto3 is slow to load

        return SnsTopic(client=self._client("sns"), arn=arn)

    @cached_property
    def sources(self) -> Sources:
        """The sources of a check."""
        control, settings = self.settings.control, self.settings
        # All streams have one queue, which the check of the shared job watches.
        urls = ("", "") if settings.member or not self._is_first else (control.queue_url, control.dead_letter_queue_url)
        return Sources(
            job=self.job,
            runs=self.runs_of_shard,
            queue=self._queue(urls[0]),
            dead_letter_queue=self._queue(urls[1]),
            state=self.state,
            streams={each.name: self.of_streams[each.name].state for each in settings.sharing},
            shard=settings.shard,
            # One shard lands the logs of all, which the check of the first one watches.
            logs=[each.log_watch(may_note=True) for each in self._streams] if self._is_first else [],
        )

    @property
    def _streams(self) -> list[Components]:
        """The components of each stream of the job; without streams, these."""
        return [self.of_streams[each.name] for each in self.settings.sharing] or [self]

    @cached_property
    def plane(self) -> ControlPlane:
        """The control plane."""
        control = self.settings.control
        shard = self.settings.shard
        name = control.job_name if shard is None else f"{control.job_name}, shard {shard}"
        uri = of_shard(self.layout.notices, shard)
        notices = Notices(notifier=self.notifier, store=self.store, uri=uri, job_name=name)
        policy = Policy(**control.model_dump())
        streams = self.settings.sharing if self._is_first else ()
        return ControlPlane(
            sources=self.sources,
            policy=policy,
            notices=notices,
            metrics=self.metrics,
            clock=self.clock,
            # What waits in a stream is counted once, by the check of the first shard.
            stream_metrics={each.name: self.of_streams[each.name].metrics for each in streams},
            sum_metrics=self.sum_metrics,
        )

    @property
    def _is_first(self) -> bool:
        return self.settings.shard is None or self.settings.shard.number == 1

    @cached_property
    def metrics(self) -> MetricsSink:
        if self.settings.member is not None:
            return metrics_sink(self.settings.of_all_shards(), self.clock)
        return metrics_sink(self.settings, self.clock, sums_shards=self.settings.shard is None)

    @cached_property
    def sum_metrics(self) -> MetricsSink | None:
        """The metrics of all shards together, of the check of the first one."""
        if self.settings.shard is None or not self._is_first:
            return None
        return metrics_sink(self.settings.of_all_shards(), self.clock)

    @cached_property
    def of_jobs(self) -> dict[str, "ControlComponents"]:
        """The components of the check of each job, by its name: of the shared one, and of those of single streams."""
        found: dict[str, ControlComponents] = {}
        for job in self.settings.jobs:
            whole = self if job is self.settings else self.of_streams[job.name]
            for each in job.by_shard:
                found[each.run_name] = whole if each is job else ControlComponents(each, **self._given)
        return found

    def _queue(self, url: str) -> Queue | None:
        if not url:
            return None
        from compactor.adapters.aws.messages import SqsQueue  # noqa: PLC0415 - boto3 is slow to load

        return SqsQueue(sqs=self._client("sqs"), cloudwatch=self._client("cloudwatch"), url=url)

    def _client(self, service: str) -> Any:
        return _client(replace(self.store_spec, attempts=ATTEMPTS), service)

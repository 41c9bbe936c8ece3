"""Puts the control plane together from the settings."""

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from compactor.adapters.stores import StoreSpec
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.plane import ControlPlane
from compactor.control.ports import JobRuns, Notifier, Queue
from compactor.settings.control_policy import Policy
from compactor.wiring.components import Components
from compactor.wiring.emr_job import emr_job

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

        return GlueJob(client=self._client("glue"), name=self.settings.control.job_name)

    @cached_property
    def notifier(self) -> Notifier | None:
        arn = self.settings.control.topic_arn
        if not arn:
            return None
        from compactor.adapters.aws.sns_topic import SnsTopic  # noqa: PLC0415 - boto3 is slow to load

        return SnsTopic(client=self._client("sns"), arn=arn)

    @cached_property
    def sources(self) -> Sources:
        """The sources of a check."""
        control, settings = self.settings.control, self.settings
        # All streams have one queue, which the check of the shared job watches.
        urls = ("", "") if settings.member else (control.queue_url, control.dead_letter_queue_url)
        return Sources(
            job=self.job,
            runs=self.runs,
            queue=self._queue(urls[0]),
            dead_letter_queue=self._queue(urls[1]),
            state=self.state,
            streams={each.name: self.of_streams[each.name].state for each in settings.sharing},
        )

    @cached_property
    def plane(self) -> ControlPlane:
        """The control plane."""
        control = self.settings.control
        notices = Notices(notifier=self.notifier, store=self.store, uri=self.layout.notices, job_name=control.job_name)
        policy = Policy(**control.model_dump())
        return ControlPlane(
            sources=self.sources,
            policy=policy,
            notices=notices,
            metrics=self.metrics,
            clock=self.clock,
            stream_metrics={each.name: self.of_streams[each.name].metrics for each in self.settings.sharing},
        )

    @cached_property
    def of_jobs(self) -> dict[str, "ControlComponents"]:
        """The components of the check of each job, by its name: of the shared one, and of those of single streams."""
        jobs = self.settings.jobs
        return {each.control.job_name: self if each is self.settings else self.of_streams[each.name] for each in jobs}

    def _queue(self, url: str) -> Queue | None:
        if not url:
            return None
        from compactor.adapters.aws.sqs_queue import SqsQueue  # noqa: PLC0415 - boto3 is slow to load

        return SqsQueue(sqs=self._client("sqs"), cloudwatch=self._client("cloudwatch"), url=url)

    def _client(self, service: str) -> Any:
        return _client(replace(self.store_spec, attempts=ATTEMPTS), service)

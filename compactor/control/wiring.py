"""Puts the control plane together from the settings, without anything that only the job needs."""

from dataclasses import fields
from functools import cached_property, lru_cache
from typing import Any

from compactor.adapters.clock import SystemClock
from compactor.adapters.memory_glue import SilentNotifier
from compactor.adapters.metrics_sinks import metrics_sink
from compactor.adapters.processes import MachineProcesses
from compactor.adapters.stores import StoreSpec
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.plane import ControlPlane
from compactor.control.policy import MaintenanceWindow, Policy
from compactor.control.ports import JobRuns, Notifier, Queue
from compactor.ledger import Ledger
from compactor.ports import Clock, MetricsSink, ObjectStore
from compactor.presence import Runs
from compactor.settings import Settings
from compactor.settings_sections import Control

ATTEMPTS = 3
"""How often a request is sent at most: a minute later everything is asked anew."""

LONGEST_TIMEOUT_SECONDS = 10.0
"""How long to wait for an answer at most, whatever the job may wait: a look has to end before the next one."""


def policy_of(control: Control) -> Policy:
    """The policy that the settings' section gives."""
    values: dict[str, Any] = control.model_dump(include={field.name for field in fields(Policy)})
    window = values["maintenance_window"]
    return Policy(**{**values, "maintenance_window": MaintenanceWindow.parse(window) if window else None})


class ControlParts:
    """The parts of the control plane, made as they are needed.

    Args:
        settings: All settings.
        clock: Time; that of the system if none is given.
        store: Where everything is; the store that the settings name if none is given.
        job: Glue's runs; those of the job that the settings name if none are given.
        metrics: Where measurements go; the sink that the settings name if none is given.
        notifier: Tells people; the topic that the settings name if none is given.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        store: ObjectStore | None = None,
        job: JobRuns | None = None,
        metrics: MetricsSink | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        # A part that is given is one that need not be made.
        if store is not None:
            self.store = store
        if job is not None:
            self.job = job
        if metrics is not None:
            self.metrics = metrics
        if notifier is not None:
            self.notifier = notifier

    @cached_property
    def store(self) -> ObjectStore:
        aws = self.settings.aws
        return StoreSpec(aws.region or None, aws.endpoint_url or None, self._timeout_seconds).open()

    @cached_property
    def job(self) -> JobRuns:
        from compactor.adapters.aws import GlueJob  # noqa: PLC0415 - boto3 is slow to load

        return GlueJob(self._client("glue"), self.settings.control.job_name)

    @cached_property
    def metrics(self) -> MetricsSink:
        return metrics_sink(self.settings, self.clock)

    @cached_property
    def notifier(self) -> Notifier:
        arn = self.settings.control.topic_arn
        if not arn:
            return SilentNotifier()
        from compactor.adapters.aws import SnsTopic  # noqa: PLC0415 - boto3 is slow to load

        return SnsTopic(self._client("sns"), arn)

    @cached_property
    def sources(self) -> Sources:
        layout = self.settings.layout()
        control = self.settings.control
        return Sources(
            job=self.job,
            runs=Runs(self.store, layout, self.clock, MachineProcesses()),
            queue=self._queue(control.queue_url),
            dead_letter_queue=self._queue(control.dead_letter_queue_url),
            store=self.store,
            layout=layout,
            ledger=Ledger(self.store, layout, self.clock, "control"),
        )

    @cached_property
    def plane(self) -> ControlPlane:
        """The control plane."""
        notices = Notices(self.notifier, self.store, self.settings.layout().notices, self.settings.control.job_name)
        return ControlPlane(
            self.sources, policy_of(self.settings.control), notices=notices, metrics=self.metrics, clock=self.clock
        )

    def _queue(self, url: str) -> Queue | None:
        if not url:
            return None
        from compactor.adapters.aws import SqsQueue  # noqa: PLC0415 - boto3 is slow to load

        return SqsQueue(self._client("sqs"), self._client("cloudwatch"), url)

    def _client(self, service: str) -> Any:
        aws = self.settings.aws
        return _client(service, aws.region or None, aws.endpoint_url or None, self._timeout_seconds)

    @property
    def _timeout_seconds(self) -> float:
        return min(self.settings.aws.timeout_seconds, LONGEST_TIMEOUT_SECONDS)


@lru_cache(maxsize=16)
def _client(service: str, region: str | None, endpoint_url: str | None, timeout_seconds: float) -> Any:
    """A client of this process, kept from one call of a function to the next: making one takes long."""
    from compactor.adapters.aws import aws_client  # noqa: PLC0415 - boto3 is slow to load

    return aws_client(service, region, endpoint_url, attempts=ATTEMPTS, timeout_seconds=timeout_seconds)

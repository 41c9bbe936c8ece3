"""Puts together the job that several streams share: one process, one Spark, one set of slots."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from compactor.adapters.local.native.threads import FairThreads
from compactor.core.layout import is_seen_by_stream
from compactor.job.lanes import SharedSlots
from compactor.job.service import Service
from compactor.job.streams_job import Job, StreamsJob
from compactor.settings.settings import Settings
from compactor.telemetry.logs import log_event
from compactor.wiring.job.app import App


class StreamsApp(App):
    """The components of the shared job. Those of each stream are in an `App` of its own.

    The settings are those at the top of the file: their `stream.manifests_in_flight` is for all streams together.
    """

    @cached_property
    def slots(self) -> SharedSlots:
        """The slots of the job, which its streams share by their weights."""
        weights = {each.name: each.member.stream.weight for each in self.settings.sharing if each.member}
        return SharedSlots(self.settings.stream.manifests_in_flight, weights)

    @cached_property
    def apps(self) -> dict[str, App]:
        """The components of each stream, whose metrics and slots later ones have, too."""
        return {each.name: self._app(each) for each in self.settings.sharing}

    @cached_property
    def needs_spark(self) -> bool:
        """Whether any stream runs on Spark.

        Raises:
            SettingsError: The settings ask for a job without Spark, and the engine of a stream needs Spark.
        """
        return any(each.needs_spark for each in self.apps.values())

    @cached_property
    def converts_on_spark(self) -> bool:
        """Whether Spark, which all streams share, converts the rows of any."""
        return any(each.converts_on_spark for each in self.apps.values())

    def job(self) -> Job:
        """Make the job on Spark, which it starts.

        Raises:
            SettingsError: No stream shares the job.
        """
        self._check()
        spark = self.spark
        return self.job_of(lambda app: app.service(), spark=spark)

    def threaded_job(self, threads: int) -> Job:
        """Make the job without Spark. All streams share so many threads; one that works alone uses all of them."""
        self._check()
        shared = FairThreads(threads)
        return self.job_of(lambda app: app.threaded_service(shared))

    def job_of(self, new_service: Callable[[App], Service], **given: Any) -> StreamsJob:
        """Make the job of services, each as the function makes it from the components of its stream.

        `given` are further replacements of components.
        """

        def made(settings: Settings) -> Service:
            metrics = self.apps[settings.name].metrics  # it has a thread of its own
            return new_service(self._app(settings, **{"metrics": metrics, **given}))

        services = {each.name: partial(made, each) for each in self.settings.sharing}
        return StreamsJob(new_services=services, heartbeat=self.heartbeat, metrics=self.metrics)

    def _check(self) -> None:
        """Check that there is such a job, and tell of work from before the settings had streams."""
        self.settings.require_job()
        folders = (self.layout.manifests_folder, self.layout.pending_folder)
        left = [
            info.uri
            for folder in folders
            for info in self.store.list(folder)
            if is_seen_by_stream(info.uri.removeprefix(folder), info.size_bytes)
        ]
        if left:
            log_event("manifests.of_no_stream", objects=len(left), first=left[0])

    def _app(self, settings: Settings, **given: Any) -> App:
        common = {name: self._given.get(name) for name in ("clock", "store", "table_of_claims", "metrics")}
        return App(
            settings,
            on_crash_point=self.on_crash_point,
            on_result=self.on_result,
            shared=self.slots.streams[settings.name],
            **{**common, **given},
        )

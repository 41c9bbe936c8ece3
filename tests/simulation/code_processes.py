"""The processes of the code, as AWS and operators start them, and the services that they get in place of real ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from compactor.adapters.listed_manifests import ListedManifests
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.history.closed_dates import ClosedDates
from compactor.ops.expire import expire_dates, find_expirable
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import Settings
from compactor.sources.events.builder import Built
from compactor.sources.input_files import FileScope
from compactor.wiring import finding, operating, planning, rebuilding, streaming
from compactor.wiring.app import App
from compactor.wiring.control import control_plane
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.store import Line
from tests.simulation.topics import TOPIC
from tests.support.fakes import PlainEngine
from tests.support.memory_glue import MemoryGlue, MemoryNotifier

POLL_SECONDS = 5.0
REDRIVEN: tuple[Kind, ...] = ("manifests", "files")


class NoMetrics:
    """Keeps nothing."""

    def emit(self, values: object, about: object = None) -> None:
        pass

    def flush(self, timeout_seconds: float) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class WorldClock:
    """The true time."""

    scheduler: Scheduler

    def now(self) -> datetime:
        return self.scheduler.moment()


@dataclass(frozen=True, slots=True)
class ProcessClock:
    """The clock of one process, which may be off."""

    scheduler: Scheduler
    process: Process

    def now(self) -> datetime:
        return self.scheduler.moment() + timedelta(seconds=self.process.skew_seconds)


class ForgetfulEngine(PlainEngine):
    """Loses a row now and then, as a bug of an engine would: verification has to notice."""

    def __init__(self, *args: Any, forgets: Callable[[str], bool], **more: Any) -> None:
        super().__init__(*args, **more)
        self._forgets = forgets

    def _table(self, request: Any, schema: Any, rows: Any) -> Any:
        return super()._table(request, schema, rows[:-1] if self._forgets(request.manifest.manifest_id) else rows)


@dataclass(slots=True)
class Glue:
    """Glue as one process of the control plane sees it."""

    glue: MemoryGlue
    line: Line

    def list(self, since: Any) -> Any:
        return self.line.call("glue runs", lambda: self.glue.list(since))

    def defined_at(self) -> Any:
        return self.line.call("glue definition", self.glue.defined_at)

    def start(self) -> Any:
        return self.line.call("glue start", self.glue.start)

    def stop(self, run_id: str) -> None:
        self.line.call(f"glue stop {run_id}", lambda: self.glue.stop(run_id))


@dataclass(frozen=True, slots=True)
class Code:
    """Runs one process each.

    Attributes:
        close_after: How long a date must have no new record before it is closed.
        given: What a process gets in place of the services that its settings name.
        forgets: Whether the engine loses a row of a manifest now.
        archive_days: The age from which `compactor data clean` deletes archived manifests.
        rejects_days: The same for rejects; 0 keeps them.
        task_bytes: Decoded bytes after which a manifest leaves further files to the next one; None for no limit.
    """

    settings: Settings  # of all shards
    close_after: timedelta
    given: Callable[[Process], dict[str, Any]]
    forgets: Callable[[str], bool]
    archive_days: float
    rejects_days: float
    task_bytes: int | None = None

    def build(self, process: Process, bodies: Mapping[str, str]) -> Built:
        """The builder function."""
        return planning.builder(App(self.settings, **self.given(process))).build(bodies)

    def seal(self, process: Process) -> None:
        """The sealer function."""
        planning.sealer(App(self.settings, **self.given(process))).seal()

    def check(self, process: Process, glues: Sequence[Glue]) -> None:
        """The function of the control plane: it checks the job of each shard."""
        for settings, glue in zip(self.settings.by_shard, glues, strict=True):
            control_plane(settings, **self.given(process), job=glue, notifier=MemoryNotifier()).check()

    def close_breaker(self, process: Process, glues: Sequence[Glue]) -> None:
        """`compactor job check --close-breaker`."""
        for settings, glue in zip(self.settings.by_shard, glues, strict=True):
            plane = control_plane(settings, **self.given(process), job=glue, notifier=MemoryNotifier())
            plane.sources.close_breaker(plane.clock.now())

    def work(self, process: Process, settings: Settings) -> None:
        """The job, or that of one shard."""
        app = App(settings, **self.given(process))
        stream = settings.stream
        source = ListedManifests(
            app.store,
            app.layout.manifests_folder,
            batch_size=stream.manifests_per_trigger,
            poll_seconds=stream.trigger_interval_seconds,
        )
        service = streaming.service_on(app, self._engine(app, self.task_bytes), source)
        service.poll_seconds = POLL_SECONDS
        service.run(once=False)

    def plan_topic(self, process: Process, max_manifests: int) -> None:
        """`compactor plan kafka://...`."""
        streaming.lander(self._app(process), TOPIC.scheme).land(TOPIC, max_manifests=max_manifests)

    def plan(self, process: Process, *, settle_seconds: float) -> None:
        """`compactor plan`."""
        prefix = self.settings.input.allowed_prefixes[0]
        finding.plan(self._app(process), prefix, FileScope(settle_seconds=settle_seconds))

    def redrive(self, process: Process) -> None:
        """`compactor redrive` for dead letters, then for files."""
        for kind in REDRIVEN:
            app = self._app(process)
            operating.redriver(app).redrive(find_redrivable(app.state, Scope(kind)))

    def rebuild(self, process: Process) -> None:
        """`compactor rebuild`."""
        app = self._app(process)
        scan = operating.rebuild_scanner(app).scan()
        rebuilding.rebuilder(app, lambda rules: self._engine(app, rules.limits.task_bytes)).rebuild(scan)

    def clean(self, process: Process) -> None:
        """`compactor data clean`."""
        operating.cleaner(self._app(process)).clean(archive_days=self.archive_days, rejects_days=self.rejects_days)

    def expire(self, process: Process, before: str) -> None:
        """`compactor data expire --before DATE`, once a date was closed here."""
        app = self._app(process)
        if ClosedDates(app.store, app.layout).has_begun():
            expire_dates(operating.date_expirer(app, process.name), find_expirable(app.state, before))

    def close(self, process: Process) -> None:
        """`compactor data close`."""
        replace(operating.closer(self._app(process)), close_after=self.close_after).close()

    def verify(self, process: Process, *, deep: bool) -> VerifyResult:
        """`compactor verify`, or `compactor verify --deep`, which believes no summary."""
        return operating.verifier(self._app(process), deep=deep).verify_all()

    def _app(self, process: Process) -> App:
        return App(self.settings, **self.given(process))

    def _engine(self, app: App, task_bytes: int | None) -> ForgetfulEngine:
        return ForgetfulEngine(
            app.store,
            metadata_columns=self.settings.metadata_columns,
            rows_per_file=8,
            task_bytes=task_bytes,
            forgets=self.forgets,
        )

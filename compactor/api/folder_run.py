"""One call of `compact`: settles the types, plans its sources, processes waiting manifests, and verifies."""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.adapters.local.machine import person
from compactor.adapters.local.native.threads import usable_threads
from compactor.adapters.stores import WatchedReads
from compactor.api.compact_result import CompactResult, Hole
from compactor.api.progress import Display, StepDisplay, StopRequests
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileReport
from compactor.core.errors import AccessError, ObjectNotFound, SettingsError
from compactor.core.inputs.source_places import in_words
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectInfo
from compactor.core.text.formatting import count, duration
from compactor.job.report import ManifestsUnfinished, RunReport
from compactor.job.results import Result
from compactor.job.service import Service
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.reading import account_of
from compactor.ledger.backlog import Backlog, read_backlog
from compactor.ndjson.files.envelopes import find_envelopes, longest_rows
from compactor.ops.rebuild.rebuilder import Rebuilt
from compactor.ops.redrive.giving_up import given_up, given_up_if_gone
from compactor.ops.verify.report import VerifyResult
from compactor.settings import places
from compactor.settings.compact_paths import has_schema_file
from compactor.settings.settings import Settings
from compactor.sources.candidates import LINKS
from compactor.sources.folders.matching import is_of
from compactor.sources.folders.planning import FolderPlanner, OnReplaced, changed_files, left_out
from compactor.sources.folders.waiting import SETTLE_SECONDS, SETTLING, PatientPlanner, SourceSurvey
from compactor.sources.input_files import FileScope
from compactor.sources.plan import Plan
from compactor.telemetry.logs import run_in_log
from compactor.wiring import finding, operating, planning, streaming
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice, installed_engine
from compactor.wiring.folder import FolderSettings, check_folders, check_rows_are_known
from compactor.wiring.opening import job_registry
from compactor.wiring.spark import check_java, joined, running_session

INFERRED_RECORDS = 100_000
"""The most records that `--types infer` reads, spread over the files. Later values that do not fit are rescued."""


@dataclass
class FolderTypes:
    """The types of a call; each batch of `--watch` has its own.

    Attributes:
        step: Shows that input is being read.
    """

    folder: FolderSettings
    step: StepDisplay
    _given: bytes | None = field(default=None, init=False)  # a schema file to keep
    _are_kept: bool = field(default=False, init=False)

    @property
    def _are_inferred(self) -> bool:
        """Whether this call chooses the types: the first one with `--types infer`."""
        return self.folder.options.types == "infer" and not has_schema_file(self.folder.kept or {})

    @property
    def need_data(self) -> bool:
        """Whether they are still to be inferred from the input."""
        return self._are_inferred and not self._are_kept

    def check(self, app: App) -> None:
        """Check, before any work, that the types are usable.

        Raises:
            SettingsError: The schema file is missing, has faults, or the columns of DST already have different types.
        """
        if self._are_kept:
            return
        paths = self.folder.paths
        if self.folder.settings.schema.file not in {"", paths.schema_file}:
            job_registry(app).check_declared()  # set by a variable, so it is not copied
        else:
            self._given = self._read(app)
        has_columns = self.need_data and app.registry.latest().version > 0
        if has_columns and app.store.stat(paths.schema_file) is None:
            raise SettingsError(
                [f"--types: {paths.output} already has columns, whose types never change -> expected a new DST"]
            )

    def _read(self, app: App) -> bytes | None:
        """The schema file of this or an earlier call, checked; None if there is none."""
        folder = self.folder
        named = folder.options.schema or (folder.kept or {}).get("schema", {}).get("file")
        if not named:
            return None
        where = "--schema" if folder.options.schema else "schema.file"
        try:
            place = places.parse_place(named)
        except ValueError as exc:
            raise SettingsError([f"{where}: {named!r} -> expected {exc}"]) from exc
        try:
            data = app.store.read(place)
        except ObjectNotFound as exc:
            raise SettingsError([f"{where}: {place} does not exist -> expected a schema file"]) from exc
        except AccessError as exc:
            raise SettingsError([f"{where}: {exc} -> expected a schema file"]) from exc
        operating.check_schema_file(app, data, place)
        return data

    def keep(self, app: App, files: Iterable[ObjectInfo]) -> None:
        """Store the schema file next to the state, before the settings refer to it.

        Raises:
            SettingsError: No record has a key, or the file of a faster call has faults.
        """
        if self._are_kept:
            return
        copy = self.folder.paths.schema_file
        if self._are_inferred:
            # Of two first calls, the faster one wins.
            if not app.store.create(copy, self._inferred(app, files)):
                operating.check_schema_file(app, app.store.read(copy), copy)
        elif self._given is not None and not _holds(app, copy, self._given):
            app.store.put(copy, self._given)
        self._are_kept = True

    def _inferred(self, app: App, files: Iterable[ObjectInfo]) -> bytes:
        """Make a schema file from the input."""
        from compactor.wiring import suggesting  # noqa: PLC0415 - most calls infer no types

        folder = self.folder
        with self.step("reading", app.state.meter):
            suggester = suggesting.suggester(app.settings, app.store, app.state.meter)
            survey = suggester.survey(in_words(folder.paths.sources), files, max_records=INFERRED_RECORDS)
        return survey.schema_file(suggesting.suggestion_rules(app.settings, folder.options.names)).encode()


def _holds(app: App, place: str, data: bytes) -> bool:
    try:
        return app.store.read(place) == data
    except ObjectNotFound:
        return False


@dataclass
class FolderRun:
    """One call.

    Attributes:
        folder: Its places and settings.
        display: Shows progress.
        stopping: Opens the source of stop requests, during the work.
        deep: Whether to compare every value.
        dry_run: Whether to write nothing.
        on_replaced: What to do with a file whose earlier version has rows.
        with_hidden: Whether to include hidden files.
        sleep: Waits for a number of seconds.
        may_be_empty: Whether the sources may still be empty.
        verifies_all: Whether to verify everything, or only the manifests of this call.
    """

    folder: FolderSettings
    display: Display
    stopping: Callable[[], AbstractContextManager[StopRequests]]
    deep: bool = False
    dry_run: bool = False
    on_replaced: OnReplaced = "quarantine"
    with_hidden: bool = False
    sleep: Callable[[float], None] = field(default_factory=lambda: time.sleep)
    may_be_empty: bool = False
    verifies_all: bool = True
    _commits: list[Commit] = field(default_factory=list, init=False)
    _outputs: list[str] = field(default_factory=list, init=False)
    _longest_rows: list[FileReport] = field(default_factory=list, init=False)
    _holes: list[Hole] = field(default_factory=list, init=False)
    _ended: list[ManifestKey] = field(default_factory=list, init=False)
    _types: FolderTypes = field(init=False)
    _store: WatchedReads | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._types = FolderTypes(self.folder, self.display.step)

    def run(self) -> CompactResult:
        """Run the call.

        Raises:
            SettingsError: There is nothing to compact, and never was; or the places are unusable.
        """
        started = time.monotonic()
        result = self._result(self._app())
        return replace(result, outputs=tuple(self._outputs), seconds=round(time.monotonic() - started, 3))

    def folder_planner(self, app: App) -> FolderPlanner:
        """Make the planner of the sources."""
        sources, scope = self.folder.paths.sources, FileScope(hidden=self.with_hidden)
        return finding.folder_planner(app, sources, scope, on_replaced=self.on_replaced, planner=planning.planner(app))

    def _result(self, app: App) -> CompactResult:
        paths, settings = self.folder.paths, self.folder.settings
        check_folders(paths)
        self._types.check(app)
        planner = self._planner(app)
        survey = planner.scan()
        if self.folder.kept is None:
            if not survey.has_data and not self.may_be_empty:
                raise SettingsError([_no_data(in_words(paths.sources), survey)])
            check_rows_are_known(paths, app.layout, app.store)
        result = CompactResult(
            paths,
            app.layout.rejects_folder,
            settings.suggestions,
            Plan(),
            self.dry_run,
            self.deep,
            schema_file=settings.schema.file or None,
            is_format_given="format" in settings.input.model_fields_set,
            reading=tuple(settings.reading_lines()),
        )
        if self.dry_run:
            with self.display.step("planning", app.state.meter):
                return replace(result, plan=planner.plan(survey, dry_run=True))
        result = replace(result, run=RunReport(), resumed_manifests=0, envelopes=(), holes=(), settled=(), rebuilt=())
        if self._types.need_data and self.may_be_empty and not survey.has_data:
            return result
        self._types.keep(app, self.folder_planner(app).data(Plan()))
        self.folder.keep(app.store, app.runs)
        app, result = self._resumed(app, replace(result, remembered=tuple(self.folder.remembered)))
        result = replace(result, is_planned=not result.is_interrupted)
        if result.is_planned:
            with self.display.step("planning", app.state.meter):
                plan = self._planner(app).plan(survey)
            result = self._worked_on(app, replace(result, plan=plan))
        if result.plan.replacements and not result.is_unfinished:
            result = replace(result, rebuilt=self._replaced(result.plan))
        envelopes = tuple(find_envelopes(app.store, self._longest_rows))
        result = replace(result, envelopes=envelopes, holes=tuple(self._holes))
        if result.is_unfinished:
            return result
        finding.note_replaced(app, result.plan, self.folder.paths.sources)
        streaming.publisher(app).cover_columns(app.registry.latest().version)  # if it was deleted
        verified = self._verified(app)
        settled = {(each.manifest_id, each.uri): each for each in self._settled(app, verified)}
        files = [settled.get((each.manifest_id, each.uri), each) for each in verified.quarantined_files]
        verified = replace(verified, quarantined_files=files)
        return replace(result, settled=tuple(settled.values()), verified=verified)

    def _settled(self, app: App, report: VerifyResult) -> list[QuarantinedFile]:
        """Settle quarantined files that are now excluded, or were deleted from the sources; returns them."""
        by = person()
        excludes, ended, sources = app.state.rules.excludes, {key.id for key in self._ended}, self.folder.paths.sources
        excluded = [each for each in report.open_files if excludes(each.uri)]
        others = [each for each in report.open_files if not excludes(each.uri)]
        left = [each for each in others if is_of(sources, each.uri) or self._was_moved(app, each)]
        # A file that was deleted before this call could read it is reported by this call.
        gone = (each for each in left if each.manifest_id not in ended)
        return [
            *given_up(app.state, excluded, "excluded", "it matches input.exclude", by=by),
            *given_up_if_gone(app.state, gone, self.folder_planner(app).with_rows, by=by),
        ]

    def _was_moved(self, app: App, file: QuarantinedFile) -> bool:
        """Whether this call has the same version of a quarantined file under a different name."""
        versions = {each.etag for commit in self._commits for each in commit.files}
        commit = account_of(app.state, file.manifest_id).commit if versions else None
        return commit is not None and any(each.uri == file.uri and each.etag in versions for each in commit.files)

    def _planner(self, app: App) -> PatientPlanner:
        return PatientPlanner(self.folder_planner(app), app.clock, self.sleep, on_wait=self._tell_of_wait)

    def _tell_of_wait(self, what: str, seconds: float) -> None:
        if what == SETTLING:
            if self.verifies_all:  # later batches of a watch wait for each line that a log gets
                self.display.say(f"files changed less than {SETTLE_SECONDS:g} s ago; waiting for them to settle")
        else:
            self.display.say(f"waiting {duration(seconds)} for {what}")

    def _resumed(self, app: App, result: CompactResult) -> tuple[App, CompactResult]:
        """Finish the work of earlier calls, so that all rows are known; returns the ports for the rest of the call."""
        backlog = _backlog(app)
        if backlog.is_empty:
            return app, result
        result = replace(result, resumed_manifests=max(backlog.manifests, backlog.begun_manifests))
        with suppress(ManifestsUnfinished):  # new files need not wait; the later work reports these
            result = self._worked_on(app, result)
        if not result.is_interrupted:
            changed_files(self._commits, planning.claimer(app))
            self._commits.clear()  # this call plans changed files
        return self._app(), result

    def _worked_on(self, app: App, result: CompactResult) -> CompactResult:
        backlog = _backlog(app)
        if backlog.is_empty:
            return replace(result, backlog=backlog)
        result = replace(result, engine_choice=engine_choice(app.settings.convert))
        run, is_interrupted = self._work(app, backlog)
        result.work.merge(run)
        left = _backlog(app)
        result.plan.left_out += changed_files(self._commits, planning.claimer(app))
        return replace(result, backlog=left, is_interrupted=is_interrupted)

    def _app(self) -> App:
        """Open the ports, and check that the engine can run."""
        folder = self.folder
        app = App(folder.settings)
        is_native = installed_engine(app.settings) == "native"
        settings = folder.with_threads(usable_threads()) if is_native else folder.settings
        spark = None if is_native else _callers_session(settings)
        store = self._store = WatchedReads(app.store_spec, folder.paths.prefixes, self.display.on_read)
        # A call for a different source of the same DST may run in parallel; neither may refuse the other's manifests.
        return App(settings, store=store, on_result=self._on_result, leave_others=True, spark=spark)

    def _on_result(self, result: Result) -> None:
        if isinstance(result.outcome, Commit) and self._store is not None:
            for file in result.outcome.files:  # reads by other processes bypass this store
                self._store.note(file.uri, file.size_bytes)
        self.display.on_result(result)
        if result.outcome is not None:
            self._ended.append(result.outcome.key)
        if isinstance(result.outcome, Commit):
            self._commits.append(result.outcome)
            self._outputs += [each.final for each in result.outcome.outputs]
            self._holes += [Hole(each.uri, each.hole_bytes) for each in result.outcome.files if each.hole_bytes]
            self._longest_rows = longest_rows([*self._longest_rows, *result.outcome.files])

    def _replaced(self, plan: Plan) -> tuple[Rebuilt, ...]:
        """Rebuild the rows of replaced files; files that cannot be rebuilt are quarantined."""
        from compactor.wiring import rebuilding  # noqa: PLC0415 - most calls replace nothing

        app = App(self.folder.settings)
        with ExitStack() as stack:
            if installed_engine(app.settings) != "native":
                app = App(self.folder.settings, spark=_callers_session(self.folder.settings))
                self._start_spark(app, stack)
            stack.enter_context(run_in_log(app.run_id))
            stack.enter_context(self.display.step("rebuilding", app.state.meter))
            replaced = rebuilding.replacer(app).replace(plan.replacements)
        plan.left_out += [left_out(each, why) for each, why in replaced.refused]
        return replaced.rebuilt

    def _work(self, app: App, backlog: Backlog) -> tuple[RunReport, bool]:
        """Process the backlog; returns the report, and whether a signal stopped the work."""
        with ExitStack() as stack:
            stops = stack.enter_context(self.stopping())
            service = self._service(app, stack)
            stack.enter_context(self.display.shown(backlog.input_bytes or 0))
            stops.attach(service.stop)
            return service.run(once=True), stops.requested

    def _service(self, app: App, stack: ExitStack) -> Service:
        if installed_engine(app.settings) == "native":
            return streaming.threaded_service(app, app.settings.stream.manifests_in_flight)
        self._start_spark(app, stack)
        return streaming.service(app)

    def _start_spark(self, app: App, stack: ExitStack) -> None:
        """Report why Spark is needed, and close it at the end of the context unless it is the caller's."""
        is_open = running_session() is not None
        how = "on the open Spark session" if is_open else "starting Spark ..."
        self.display.say(f"engine {engine_choice(app.settings.convert)}; {how}")
        if not is_open:
            from compactor.adapters.spark.session import close_session  # noqa: PLC0415 - pyspark is slow to load

            stack.callback(close_session)

    def _verified(self, app: App) -> VerifyResult:
        with self.display.step("verifying", app.state.meter):
            verifier = operating.verifier(app, deep=self.deep)
            return verifier.verify_all() if self.verifies_all else verifier.verify_manifests(self._ended)


def _no_data(source: str, survey: SourceSurvey) -> str:
    met = survey.met
    links = [each for each in met.left_out if each.reason in LINKS]
    found = [f"{count(len(links), 'symbolic link')} not followed"] if links else []
    found += (
        [f"{count(hidden, 'hidden file')}: --hidden includes them"] if (hidden := met.skipped.get("hidden")) else []
    )
    found += [count(excluded, "excluded file")] if (excluded := met.skipped.get("excluded")) else []
    denied = [each.detail for each in met.left_out if each.reason == "forbidden"]
    said = f" ({'; '.join([*found, *denied[:1]])})" if found or denied else ""
    return f"SRC: {source} holds no files with data{said} -> expected NDJSON files, compressed or not"


def _callers_session(settings: Settings) -> Any | None:
    """A new session alongside the Python caller's open one; None if there is none, and Spark can start.

    Raises:
        ExtraMissing: pyspark is not installed.
        SettingsError: Spark cannot start.
    """
    session = running_session()
    if session is not None:
        return joined(settings, session)
    check_java()
    return None


def _backlog(app: App) -> Backlog:
    return read_backlog(app.state, allowed_prefixes=app.settings.input.allowed_prefixes)

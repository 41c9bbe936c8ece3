"""Puts the job together. Nothing is connected to before it is used."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Unpack

from compactor import __version__
from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.machine import MachineProcesses
from compactor.adapters.local.native.kernel import NativeGrok
from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.records import Commit
from compactor.core.errors import SettingsError
from compactor.core.logs.names import KAFKA, LogName
from compactor.core.logs.ports import Partition
from compactor.core.partitions import first_folders
from compactor.engines.columns_file import ColumnsFile
from compactor.engines.engine import Engine, EngineRules
from compactor.engines.native.engine import BinWorkers
from compactor.job.attempts import AttemptFailures, AttemptReviewer, SelfTest
from compactor.job.lanes import SharedSlots, StreamSlots, WorkQueue
from compactor.job.publication import Publisher
from compactor.job.receiving import Intake
from compactor.job.recovery import Recovery
from compactor.job.results import Result
from compactor.job.retries import Retries
from compactor.job.road import ManifestCompactor
from compactor.job.rotating_source import RotatingSource
from compactor.job.scheduler import Scheduler
from compactor.job.service import ManifestSource, Service
from compactor.job.shards import ShardShare, Share
from compactor.job.staging import CompactionRules, Stager
from compactor.job.streams_job import Job
from compactor.ledger.heartbeat import Heartbeat
from compactor.ledger.sizing_history import SizingHistory, summarised
from compactor.ndjson.kinds.formats import Formats
from compactor.settings.sections import retry_rules
from compactor.settings.settings import Settings
from compactor.sources.plan import Plan
from compactor.sources.planner import Planner
from compactor.sources.unplanned import EVERYTHING, FileScope, Unplanned, check_prefix, listed_below
from compactor.upkeep.catalog_columns import catalog_columns_task
from compactor.upkeep.cleaner import retention_task
from compactor.upkeep.tasks import Task, Tasks
from compactor.wiring.components import Replacements
from compactor.wiring.engine_choice import SourceChoice, source_choice
from compactor.wiring.job.table_components import TableComponents

if TYPE_CHECKING:
    from compactor.adapters.local.native.threads import FairThreads
    from compactor.job.table_commits import TableCommits
    from compactor.ops.rebuild.rebuilder import Rebuilder, Restager
    from compactor.ops.rebuild.replacing import Replacer
    from compactor.sources.landing.lander import Lander
    from compactor.sources.landing.lines import RecordLines
    from compactor.sources.spill import SpilledFile


CLOSING_SECONDS = 24 * 3600.0


class App(TableComponents):
    """All components of one process.

    `on_result` is called when a manifest has ended. `leave_others` leaves manifests of other sources to their planners.
    `shared` are the slots that a stream shares with others in one job.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        on_result: Callable[[Result], None] = lambda _: None,
        leave_others: bool = False,
        shared: StreamSlots | None = None,
        **replacements: Unpack[Replacements],
    ) -> None:
        super().__init__(settings, **replacements)
        self.on_crash_point = on_crash_point
        self.on_result = on_result
        self.leave_others = leave_others
        self.shared = shared

    @cached_property
    def heartbeat(self) -> Heartbeat:
        process = MachineProcesses().this()
        learn = self.clock.learn
        return Heartbeat(
            self.store,
            self.layout,
            self.clock,
            self.run_id,
            process,
            release=__version__,
            shard=self.settings.stream.shard,
            learn_time=learn,
        )

    @cached_property
    def columns_file(self) -> ColumnsFile | None:
        """The columns file; None with a table sink, whose readers need no folders."""
        if self.has_table:
            return None
        partition = first_folders(self.settings.partition_fields)
        return ColumnsFile(self.store, self.layout, self.registry, self.settings.metadata_columns, partition)

    @property
    def publisher(self) -> Publisher:
        table = self.committer() if self.has_table else None
        return Publisher(self.state, self.on_crash_point, table, self.columns_file)

    @cached_property
    def planner(self) -> Planner:
        """Puts files into manifests."""
        return self.planner_at(self.on_crash_point)

    def plan(
        self,
        prefix: str,
        scope: FileScope = EVERYTHING,
        *,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Plan:
        """Write manifests for the files below a prefix that are in none.

        Args:
            prefix: A folder within the allowed prefixes.
            scope: Which of the files.
            limit: The most manifests to write, of the earliest dates; None for any number.
            dry_run: Claim and write nothing.

        Raises:
            SettingsError: The prefix is not within the allowed ones.
        """
        check_prefix(self.state, prefix, self.settings.input.allowed_prefixes)
        listed = partial(listed_below, self.state, prefix, scope, self._is_of_other_stream)
        with self.unplanned(listed) as files:
            return self.planner.plan(files, limit=limit, dry_run=dry_run)

    @contextmanager
    def unplanned(
        self, found: "Callable[[Plan], Iterable[SpilledFile]]", *, may_be_gone: bool = False
    ) -> Iterator[Unplanned]:
        """Those of some files that are in no manifest; see `Unplanned`."""
        from compactor.adapters.local.sqlite.spilled_files import SqliteSpill  # noqa: PLC0415 - only planning needs it

        with closing(SqliteSpill()) as spill:
            yield Unplanned(
                state=self.state,
                claimer=self.claimer,
                allowed_prefixes=self.settings.input.allowed_prefixes,
                found=found,
                spill=spill,
                may_be_gone=may_be_gone,
                page_files=self.planner.page_files,
            )

    def tasks(self) -> Tasks:
        """Make what the job repeats beside its manifests."""
        retention, catalog = self.settings.retention, self.catalog_table
        tasks = [
            retention_task(self.cleaner, archive_days=retention.archive_days, rejects_days=retention.rejects_days),
            Task(name="closing", every_seconds=CLOSING_SECONDS, run=lambda _: self.close_quiet_dates()),
            *self.table_tasks(self.share.leads),
            *self.planning_tasks(),
        ]
        if catalog is not None:
            latest, metadata_columns = self.job_registry.latest, self.settings.metadata_columns
            tasks.append(catalog_columns_task(catalog, latest, metadata_columns, self.clock))
        return Tasks(self.state, tasks)

    def planning_tasks(self) -> Iterator[Task]:
        """What lands each topic and stream, in a thread of its own: it may not answer."""
        if not self.settings.logs:
            return
        from compactor.ledger.landing.progress import LandingNotes  # noqa: PLC0415 - only landing needs it
        from compactor.sources.landing.lander import LandingTurns  # noqa: PLC0415 - as above

        builder, notes = self.settings.builder, LandingNotes(self.state, self.run_id)
        for log in self.settings.logs:
            turns = LandingTurns(
                log=log,
                every_seconds=builder.max_wait_seconds,
                max_manifests=builder.max_manifests_per_plan,
                new_lander=partial(self.lander, log.scheme),
                notes=notes,
                metrics=self.metrics,
            )
            yield Task(
                name=f"landing {log}",
                every_seconds=builder.max_wait_seconds,
                run=turns.take,
                has_note=False,
                thread=f"landing {log}",
                # All shards of a job would land the same records, of which one would get them.
                leads=self.share.leads,
                at_start=turns.land_all,
            )

    def lander(self, scheme: str) -> "Lander":
        """Make what lands the topics, or the streams."""
        from compactor.adapters.logs import stray_rules  # noqa: PLC0415 - only landing needs it
        from compactor.sources.landing.lander import Lander  # noqa: PLC0415 - as above
        from compactor.sources.landing.lines import ShardLines, ValueLines  # noqa: PLC0415 - as above

        kafka, strays = self.settings.kafka, stray_rules(self.settings.kinesis.sources)

        def new_lines(log: LogName, partition: Partition) -> "RecordLines":
            if log.scheme == KAFKA:
                return ValueLines(columns=kafka.record_columns, has_lines=kafka.values == "lines")
            return ShardLines(shard=partition, stray_rule=strays.get(log.source, "keep"))

        return Lander(
            state=self.state,
            log=self.kafka if scheme == KAFKA else self.kinesis,
            allowed_prefixes=self.settings.input.allowed_prefixes,
            target_bytes=self.manifest_bytes,
            new_lines=new_lines,
            metrics=self.metrics,
        )

    def _is_of_other_stream(self, uri: str) -> bool:
        member = self.settings.member
        return member is not None and member.routes.stream_of(uri) != self.settings.name

    def job(self) -> Job:
        """Make the job of these settings, on Spark; see `service`."""
        return self.service()

    def threaded_job(self, threads: int) -> Job:
        """Make the job of these settings without Spark; see `threaded_service`."""
        return self.threaded_service(threads)

    def service(self) -> Service:
        """Make the streaming job, on Spark.

        Raises:
            SettingsError: The schema file has faults or contradicts the recorded schema. Spark was not started.
        """
        self._check_columns()
        engine = self.engine()
        from compactor.adapters.spark.stream import SparkManifestSource, StreamOrListing  # noqa: PLC0415

        stream, manifests, shard = self.settings.stream, self.layout.manifests_folder, self.settings.shard
        # Spark shows each job all manifests: only one in so many is of its own shard.
        at_once = stream.max_manifests_per_trigger * (shard.of if shard else 1)

        def new_source(checkpoint: str) -> SparkManifestSource:
            return SparkManifestSource(
                session=self.spark,
                manifests=manifests,
                checkpoint=checkpoint,
                max_manifests_per_trigger=at_once,
                trigger_interval_seconds=stream.trigger_interval_seconds,
            )

        source = self.rotating_source(new_source)
        listing = ListedManifests(self.store, manifests, at_once, stream.trigger_interval_seconds)
        return self.service_on(engine, StreamOrListing(stream=source, listing=listing, manifests=manifests))

    def rotating_source(self, new_source: Callable[[str], ManifestSource]) -> RotatingSource:
        """Make the stream of a run from streams that have a checkpoint each."""
        return RotatingSource(
            state=self.state,
            new_source=new_source,
            metrics=self.metrics,
            max_manifests=self.settings.stream.max_manifests_per_checkpoint,
        )

    def threaded_service(self, threads: "int | FairThreads") -> Service:
        """Make the job without Spark: the native engine in threads of this process, each of which writes one file.

        Args:
            threads: How many, or those that several streams share.

        Raises:
            SettingsError: The schema file has faults or contradicts the recorded schema.
        """
        from compactor.adapters.local.native.threads import ThreadBinWorkers  # noqa: PLC0415 - most commands write no rows

        self._check_columns()
        stream = self.settings.stream
        source = ListedManifests(
            self.store,
            self.layout.manifests_folder,
            batch_size=stream.manifests_in_flight,
            poll_seconds=stream.trigger_interval_seconds,
        )
        workers = ThreadBinWorkers(self.store, threads=threads, stream=self.settings.name)
        return self.service_on(self.native_engine(workers), source)

    def _check_columns(self) -> None:
        self.job_registry.check_declared()

    @cached_property
    def source_choice(self) -> SourceChoice:
        """Where the job takes its manifests from, and why."""
        return source_choice(self.settings)

    @cached_property
    def needs_spark(self) -> bool:
        """Whether the job runs on Spark: for its stream, or for its engine.

        Raises:
            SettingsError: The settings ask for a job without Spark, and its engine needs Spark.
        """
        if self.source_choice.name == "spark":
            return True
        if self.engine_name != "native":
            why = f"the engine is {self.engine_choice.name} ({self.engine_choice.reason})"
            raise SettingsError([f'stream.source: "listing" -> expected "spark", because {why}'])
        return False

    def rebuilder(self, new_engine: Callable[[EngineRules], Engine] | None = None) -> "Rebuilder":
        """Make what rebuilds manifests, each by the limits of its commit. Connects to no engine before it is used.

        Args:
            new_engine: Makes engines; by default native ones in threads of this process if possible, else on Spark.
        """
        engine, one_at_a_time = new_engine or self._engine_here, Lock()

        def stager_for(commit: Commit) -> Stager:
            limits = replace(
                self.limits,
                max_line_bytes=commit.max_line_bytes,
                max_decompressed_bytes=commit.max_decompressed_bytes,
            )
            json_files = frozenset(file.uri for file in commit.files if file.format == "json")
            formats = Formats("recorded", json_files, grok=NativeGrok(commit.grok) if commit.grok else None)
            rules = replace(self.engine_rules, limits=limits, formats=formats, on_changed_file="skip")
            # With the sizes of the commit itself, the rows are spread over as many files as before.
            target = self.settings.output.target_file_bytes
            history = SizingHistory(self.ledger, target, [summarised(commit, target_file_bytes=target)])
            with one_at_a_time:  # the first one starts threads or Spark
                made = engine(rules)
            return self._stager(made, replace(self._compaction_rules(), limits=limits, grok=commit.grok), history)

        return self.rebuilder_with(stager_for)

    def rebuilder_with(self, stager_for: "Callable[[Commit], Restager]") -> "Rebuilder":
        """Make what makes manifests again, given what stages each commit."""
        from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles  # noqa: PLC0415 - most commands rebuild nothing
        from compactor.ops.rebuild.rebuilder import Rebuilder  # noqa: PLC0415 - as above

        return Rebuilder(
            state=self.state,
            stager_for=stager_for,
            publisher=self.publisher,
            verifier=self.verifier(),
            digest_of=LocalSeenFiles(self.store, "").digest,
            threads=self.settings.stream.manifests_in_flight,
            on_crash_point=self.on_crash_point,
        )

    def replacer(self, new_engine: Callable[[EngineRules], Engine] | None = None) -> "Replacer":
        """Make what makes manifests again with new versions of their files; see `rebuilder`."""
        from compactor.ops.rebuild.replacing import Replacer  # noqa: PLC0415 - as above

        return Replacer(
            state=self.state,
            rebuilder=self.rebuilder(new_engine),
            claimer=self.claimer,
        )

    def _engine_here(self, rules: EngineRules) -> Engine:
        return self.native_engine(self._threads, rules) if self.engine_name == "native" else self.engine(rules)

    @cached_property
    def _threads(self) -> BinWorkers:
        # Most commands write no rows.
        from compactor.adapters.local.native.threads import ThreadBinWorkers, usable_threads  # noqa: PLC0415

        return ThreadBinWorkers(self.store, threads=usable_threads())

    def service_on(self, engine: Engine, source: ManifestSource) -> Service:
        """Make the job on a given engine and stream."""
        share = self.share
        table = self.table_commits(self.publisher, None if share.is_whole else share.leads)
        runner = self.scheduler(engine, table)
        return Service(
            state=self.state,
            runner=runner,
            recovery=Recovery(self.state, self.runs, self.cleaner),
            tasks=self.tasks(),
            source=source,
            runs=self.runs,
            heartbeat=self.heartbeat,
            metrics=self.metrics,
            target_file_bytes=self.settings.output.target_file_bytes,
            share=share,
            table=table,
        )

    @cached_property
    def share(self) -> Share:
        """The manifests that this job takes."""
        shard = self.settings.shard
        return Share() if shard is None else ShardShare(shard=shard, run_id=self.run_id, runs=self.runs)

    def scheduler(self, engine: Engine, table: "TableCommits | None" = None) -> Scheduler:
        """Make what compacts the manifests of a micro-batch on a given engine.

        Args:
            engine: Reads and writes.
            table: Brings placed manifests to done, beside this runner; without it, a table sink takes each at once.
        """
        settings, rules = self.settings, self._compaction_rules()
        queue = WorkQueue(rules.manifests_in_flight)
        slots = self.shared or SharedSlots(queue.slots, {"": 1}).streams[""]
        intake = Intake(
            state=self.state,
            allowed_prefixes=settings.input.allowed_prefixes,
            leave_others=self.leave_others,
            on_crash_point=self.on_crash_point,
        )
        return Scheduler(
            intake=intake,
            compactor=replace(self._compactor(engine, rules, slots), leaves_placed=table is not None),
            queue=queue,
            slots=slots,
            postponed=Retries(self.settings.stream.retry_pause_seconds),
            on_result=self.on_result,
            table=table,
        )

    def _compaction_rules(self) -> CompactionRules:
        settings = self.settings
        return CompactionRules(
            retries=retry_rules(self.settings.stream),
            metadata_columns=settings.metadata_columns,
            manifests_in_flight=settings.stream.manifests_in_flight,
            limits=self.limits,
            grok=self.grok.rules if self.grok else None,
            in_place=self.is_in_place,
        )

    def _stager(self, engine: Engine, rules: CompactionRules, history: SizingHistory) -> Stager:
        return Stager(
            state=self.state,
            engine=engine,
            registry=self.job_registry,
            history=history,
            rules=rules,
            on_crash_point=self.on_crash_point,
        )

    def _compactor(self, engine: Engine, rules: CompactionRules, slots: StreamSlots) -> ManifestCompactor:
        reviewer = AttemptReviewer(
            state=self.state,
            history=self.history,
            rules=rules.retries,
            runs=self.runs,
            run_began_at=cache(self.clock.now),
        )
        return ManifestCompactor(
            state=self.state,
            stager=self._stager(engine, rules, self.history),
            failures=AttemptFailures(state=self.state, engine=engine, in_flight=slots.job.in_flight),
            reviewer=reviewer,
            self_test=SelfTest(state=self.state, engine=engine, metadata_columns=rules.metadata_columns),
            publisher=self.publisher,
            history=self.history,
            share=self.share,
            on_crash_point=self.on_crash_point,
        )

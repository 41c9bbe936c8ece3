"""Builds the streaming job: for one stream, or for several that share one process, one Spark and one set of slots.

Nothing connects before use.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from compactor.adapters.listed_manifests import Bell, ListedManifests
from compactor.core.layout import is_seen_by_stream
from compactor.core.logs.names import KAFKA, LogName
from compactor.core.logs.ports import Partition
from compactor.core.partitions import first_folders
from compactor.engines.columns_file import ColumnsFile
from compactor.engines.engine import Engine
from compactor.job.attempts import AttemptFailures, AttemptReviewer, SelfTest
from compactor.job.lanes import SharedSlots, WorkQueue
from compactor.job.publication import Publisher
from compactor.job.receiving import Intake
from compactor.job.recovery import Recovery
from compactor.job.retries import Retries
from compactor.job.road import ManifestCompactor
from compactor.job.rotating_source import RotatingSource
from compactor.job.scheduler import Scheduler
from compactor.job.service import ManifestSource, Service
from compactor.job.staging import CompactionRules, Stager
from compactor.job.streams_job import Job, StreamsJob
from compactor.ledger.sizing_history import SizingHistory
from compactor.ndjson.lines import Limits
from compactor.sources.plan import MAX_MANIFESTS_PER_PLAN
from compactor.telemetry.logs import log_event
from compactor.upkeep.catalog_columns import catalog_columns_task
from compactor.upkeep.cleaner import retention_task
from compactor.upkeep.tasks import Task, Tasks
from compactor.wiring import engines, operating, table_sink
from compactor.wiring.app import App
from compactor.wiring.engine_choice import is_in_place
from compactor.wiring.opening import grok_reader_of, job_registry, kafka_log, kinesis_log, spark_session

# Most commands land nothing and write no rows, and would wait for all of this to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.adapters.local.native.threads import FairThreads
    from compactor.job.table_commits import TableCommits
    from compactor.sources.landing.lander import Lander
    from compactor.sources.landing.lines import RecordLines

CLOSING_SECONDS = 24 * 3600.0

MANIFESTS_PER_CHECKPOINT = 10_000
"""Manifests after which the job moves to a new Spark checkpoint: Spark's file log grows with each of them."""


def spark_job(app: App) -> Job:
    """Create the configured job on Spark, which this starts; see `service`.

    Raises:
        SettingsError: No stream shares the job, or see `service`.
    """
    if not app.settings.streams:
        return service(app)
    app.settings.require_job()
    return streams_job(app, service, spark=spark_session(app))


def threaded_job(app: App, threads: int) -> Job:
    """Create the configured job without Spark; see `threaded_service`.

    All streams share the threads; one without competition uses all of them.
    """
    if not app.settings.streams:
        return threaded_service(app, threads)
    from compactor.adapters.local.native.threads import FairThreads

    shared = FairThreads(threads)
    return streams_job(app, lambda of: threaded_service(of, shared))


def streams_job(app: App, new_service: Callable[[App], Service], spark: Any = None) -> StreamsJob:
    """Create the shared job from a service per stream, made by the given function.

    Raises:
        SettingsError: No stream shares the job.
    """
    settings = app.settings
    settings.require_job()
    _tell_of_earlier_work(app)
    weights = {each.name: each.member.stream.weight for each in settings.sharing if each.member}
    # The top-level settings define how many manifests all streams together have in flight.
    slots = SharedSlots(settings.stream.manifests_in_flight, weights)

    streams = app.of_streams  # created here: streams' threads might each create their own

    def made(name: str) -> Service:
        metrics = streams[name].metrics  # it has its own thread
        return new_service(app.of_stream(name, shared=slots.streams[name], metrics=metrics, spark=spark))

    services = {each.name: partial(made, each.name) for each in settings.sharing}
    return StreamsJob(new_services=services, heartbeat=app.heartbeat, metrics=app.metrics)


def _tell_of_earlier_work(app: App) -> None:
    """Log work from before the settings had streams."""
    folders = (app.layout.manifests_folder, app.layout.pending_folder)
    left = [
        info.uri
        for folder in folders
        for info in app.store.list(folder)
        if is_seen_by_stream(info.uri.removeprefix(folder), info.size_bytes)
    ]
    if left:
        log_event("manifests.of_no_stream", objects=len(left), first=left[0])


def service(app: App) -> Service:
    """Create one stream's job on Spark.

    Raises:
        SettingsError: The schema file has faults or contradicts the recorded schema. Spark was not started.
    """
    job_registry(app).check_declared()
    engine = engines.engine(app)
    from compactor.adapters.spark.stream import SparkManifestSource, StreamOrListing

    stream, manifests, shard = app.settings.stream, app.layout.manifests_folder, app.settings.shard
    # Spark shows each job all manifests: only a fraction belongs to its own shard.
    at_once = stream.manifests_per_trigger * (shard.of if shard else 1)

    def new_source(checkpoint: str) -> SparkManifestSource:
        return SparkManifestSource(
            session=spark_session(app),
            manifests=manifests,
            checkpoint=checkpoint,
            max_manifests_per_trigger=at_once,
            trigger_interval_seconds=stream.trigger_interval_seconds,
        )

    source = rotating_source(app, new_source)
    listing = ListedManifests(app.store, manifests, at_once, stream.trigger_interval_seconds)
    return service_on(app, engine, StreamOrListing(stream=source, listing=listing, manifests=manifests))


def rotating_source(app: App, new_source: Callable[[str], ManifestSource]) -> RotatingSource:
    """Create a run's stream from consecutive streams with a checkpoint each."""
    return RotatingSource(
        state=app.state,
        new_source=new_source,
        metrics=app.metrics,
        max_manifests=MANIFESTS_PER_CHECKPOINT,
    )


def threaded_service(app: App, threads: "int | FairThreads") -> Service:
    """Create one stream's job without Spark: the native engine in threads, each of which writes one file.

    Args:
        app: The ports.
        threads: Number of threads, or threads shared by several streams.

    Raises:
        SettingsError: The schema file has faults or contradicts the recorded schema.
    """
    from compactor.adapters.local.native.threads import ThreadBinWorkers

    job_registry(app).check_declared()
    stream = app.settings.stream
    source = ListedManifests(
        app.store,
        app.layout.manifests_folder,
        batch_size=stream.manifests_in_flight,
        poll_seconds=stream.trigger_interval_seconds,
        bell=_bell(app),
    )
    workers = ThreadBinWorkers(
        app.store,
        threads=threads,
        stream=app.settings.name,
        allowed_prefixes=app.settings.input.allowed_prefixes,
    )
    return service_on(app, engines.native_engine(app, workers), source)


def _bell(app: App) -> Bell | None:
    """The queue of new manifests; none for a shard or a stream: each message reaches only one of several readers."""
    settings = app.settings
    if not settings.stream.queue_url or not app.share.is_whole or settings.member:
        return None
    from compactor.adapters.aws.clients import sqs_client
    from compactor.adapters.aws.messages import SqsBell

    aws = settings.aws
    return SqsBell(sqs_client(aws.region or None, aws.endpoint_url or None), settings.stream.queue_url)


def service_on(app: App, engine: Engine, source: ManifestSource) -> Service:
    """Create one stream's job with a given engine and source of manifests."""
    table = table_sink.table_commits(app, publisher(app), None if app.share.is_whole else app.share.leads)
    return Service(
        state=app.state,
        runner=scheduler(app, engine, table),
        recovery=Recovery(app.state, app.runs, operating.cleaner(app)),
        tasks=tasks(app),
        source=source,
        runs=app.runs,
        heartbeat=app.heartbeat,
        metrics=app.metrics,
        target_file_bytes=app.settings.output.target_file_bytes,
        share=app.share,
        on_turn=app.on_turn,
    )


def tasks(app: App) -> Tasks:
    """Create the job's recurring tasks."""
    retention, catalog, metadata_columns = app.settings.retention, app.catalog_table, app.settings.metadata_columns
    cleaner = operating.cleaner(app)
    repeated = [
        retention_task(cleaner, archive_days=retention.archive_days, rejects_days=retention.rejects_days),
        Task(name="closing", every_seconds=CLOSING_SECONDS, run=lambda _: operating.close_quiet_dates(app)),
        *table_sink.table_tasks(app, app.share.leads),
        *_landing_tasks(app),
    ]
    if catalog is not None:
        repeated.append(catalog_columns_task(catalog, job_registry(app).latest, metadata_columns, app.clock))
    return Tasks(app.state, repeated)


def _landing_tasks(app: App) -> Iterator[Task]:
    """The tasks that land each topic and stream, each in its own thread, because it may not respond."""
    if not app.settings.logs:
        return
    from compactor.ledger.landing.progress import LandingNotes
    from compactor.sources.landing.lander import LandingTurns

    builder, notes = app.settings.builder, LandingNotes(app.state, app.run_id)
    for log in app.settings.logs:
        turns = LandingTurns(
            log=log,
            every_seconds=builder.max_wait_seconds,
            max_manifests=MAX_MANIFESTS_PER_PLAN,
            new_lander=partial(lander, app, log.scheme),
            notes=notes,
            metrics=app.metrics,
        )
        yield Task(
            name=f"landing {log}",
            every_seconds=builder.max_wait_seconds,
            run=turns.take,
            has_note=False,
            thread=f"landing {log}",
            # All shards of a job would land the same records, and only one would succeed.
            leads=app.share.leads,
            at_start=turns.land_all,
        )


def lander(app: App, scheme: str) -> "Lander":
    """Create the lander of topics, or of streams."""
    from compactor.adapters.logs import stray_rules
    from compactor.sources.landing.lander import Lander
    from compactor.sources.landing.lines import ShardLines, ValueLines

    kafka, strays = app.settings.kafka, stray_rules(app.settings.kinesis.sources)

    def new_lines(log: LogName, partition: Partition) -> "RecordLines":
        if log.scheme == KAFKA:
            return ValueLines(columns=kafka.record_columns, has_lines=kafka.values == "lines")
        return ShardLines(shard=partition, stray_rule=strays.get(log.source, "keep"))

    return Lander(
        state=app.state,
        log=kafka_log(app) if scheme == KAFKA else kinesis_log(app),
        allowed_prefixes=app.settings.input.allowed_prefixes,
        target_bytes=app.manifest_bytes,
        new_lines=new_lines,
        metrics=app.metrics,
    )


def scheduler(app: App, engine: Engine, table: "TableCommits | None" = None) -> Scheduler:
    """Create the scheduler that compacts a micro-batch's manifests with a given engine.

    Args:
        app: The ports.
        engine: Reads and writes.
        table: Brings published manifests to done in the background; without it, a table sink takes each at once.
    """
    rules = compaction_rules(app)
    queue = WorkQueue(rules.manifests_in_flight)
    slots = app.shared or SharedSlots(queue.slots, {"": 1}).streams[""]
    reviewer = AttemptReviewer(
        state=app.state,
        history=app.history,
        rules=rules.retries,
        runs=app.runs,
        run_began_at=cache(app.clock.now),
    )
    compactor = ManifestCompactor(
        state=app.state,
        stager=stager(app, engine, rules, app.history),
        failures=AttemptFailures(state=app.state, engine=engine, in_flight=slots.job.in_flight),
        reviewer=reviewer,
        self_test=SelfTest(state=app.state, engine=engine, metadata_columns=rules.metadata_columns),
        publisher=publisher(app),
        history=app.history,
        share=app.share,
        on_crash_point=app.on_crash_point,
        waits_for_table=table is not None,
    )
    intake = Intake(
        state=app.state,
        allowed_prefixes=app.settings.input.allowed_prefixes,
        leave_others=app.leave_others,
        on_crash_point=app.on_crash_point,
    )
    return Scheduler(
        intake=intake,
        compactor=compactor,
        queue=queue,
        slots=slots,
        postponed=Retries(app.settings.retry_pause_seconds),
        on_result=app.on_result,
        table=table,
    )


def compaction_rules(app: App) -> CompactionRules:
    """The compaction rules in the settings."""
    settings, grok = app.settings, grok_reader_of(app)
    return CompactionRules(
        retries=settings.retry_rules,
        metadata_columns=settings.metadata_columns,
        manifests_in_flight=settings.stream.manifests_in_flight,
        limits=Limits.of(settings),
        grok=grok.rules if grok else None,
        in_place=is_in_place(settings),
    )


def stager(app: App, engine: Engine, rules: CompactionRules, history: SizingHistory) -> Stager:
    """Create the stager of manifests with an engine."""
    return Stager(
        state=app.state,
        engine=engine,
        registry=job_registry(app),
        history=history,
        rules=rules,
        on_crash_point=app.on_crash_point,
    )


def publisher(app: App) -> Publisher:
    """Create the publisher of decided manifests. A table sink needs no columns file: its readers list no folders."""
    columns_file = None
    if not app.settings.has_table:
        partition = first_folders(app.settings.partition_fields)
        columns = app.settings.metadata_columns
        columns_file = ColumnsFile(app.store, app.layout, app.registry, columns, partition)
    table = table_sink.committer(app) if app.settings.has_table else None
    return Publisher(app.state, app.on_crash_point, table, columns_file)

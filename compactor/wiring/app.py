"""Puts all parts together, once for each command. Nothing is connected to before it is asked for."""

import itertools
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.native_kernel import is_installed
from compactor.adapters.local.processes import MachineProcesses
from compactor.core.crash_points import (
    OnCrashPoint,
    OnRedriveCrashPoint,
    ignore_crash_point,
    ignore_redrive_crash_point,
)
from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.layout import is_s3
from compactor.core.ports import ClaimTable, Clock, MetricsSink, ObjectStore
from compactor.engines.engine import Engine, EngineName
from compactor.engines.native_engine import BinWorkers, NativeEngine, NativeRules
from compactor.job.attempt_failures import AttemptFailures
from compactor.job.batches import BatchRunner
from compactor.job.compaction import CompactionResult, ManifestCompactor
from compactor.job.intake import Intake
from compactor.job.publication import Publisher
from compactor.job.recovery import Recovery
from compactor.job.retention.cleaner import Cleaner
from compactor.job.retention.daily import DailyRetention
from compactor.job.retention.retention import Retention
from compactor.job.service import ManifestSource, Service
from compactor.job.staging import CompactionRules, Stager
from compactor.ledger.heartbeat import Heartbeat
from compactor.manifests.file_search import FileSearch
from compactor.manifests.planning import Planner
from compactor.ndjson.lines import Limits
from compactor.ops.redrive.claims import RedriveClaims
from compactor.ops.redrive.planner import RedrivePlanner
from compactor.ops.redrive.redrive_log import RedriveLog
from compactor.ops.redrive.redriver import Redriver
from compactor.ops.redrive.scan import RedriveScan
from compactor.ops.status.health import Rules
from compactor.ops.status.reading import StatusReader
from compactor.ops.trace.tracer import Tracer
from compactor.ops.verify.contents import DeepVerifier
from compactor.ops.verify.verifier import DeepCheck, Verifier
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import DeclaredColumn
from compactor.schema.schema_file import parse_schema_file
from compactor.settings.sections import Convert
from compactor.settings.settings import Settings
from compactor.settings.spark_conf import master_is_given, spark_properties
from compactor.wiring.components import Components
from compactor.wiring.control import ControlComponents


def engine_of(convert: Convert) -> EngineName:
    """The engine that settings come to, installed or not; `auto` depends on what this process finds."""
    if convert.engine == "auto":
        return "native" if is_installed() else "spark"
    return convert.engine


class App(Components):
    """All parts of one process.

    Args:
        settings: All settings.
        on_crash_point: Told of each step of each manifest.
        on_result: Told of each manifest that came to an end.
        leave_others: As `Intake` takes it.
        clock: As `Components` takes it.
        store: Likewise.
        claims: Likewise.
        metrics: Likewise.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        on_result: Callable[[CompactionResult], None] = lambda _: None,
        leave_others: bool = False,
        clock: Clock | None = None,
        store: ObjectStore | None = None,
        claims: ClaimTable | None = None,
        metrics: MetricsSink | None = None,
    ) -> None:
        super().__init__(settings, clock=clock, store=store, claims=claims, metrics=metrics)
        self.on_crash_point = on_crash_point
        self.on_result = on_result
        self.leave_others = leave_others

    @cached_property
    def registry(self) -> SchemaRegistry:
        """The schema versions, to read: what is on record holds, whatever the schema file says by now."""
        return self._registry(())

    @cached_property
    def job_registry(self) -> SchemaRegistry:
        """The schema versions, for who makes new ones: with the columns of the schema file."""
        return self._registry(self._declared_columns())

    def _registry(self, declared: Sequence[DeclaredColumn]) -> SchemaRegistry:
        schema = self.settings.schema
        return SchemaRegistry(
            self.store,
            self.layout,
            self.clock,
            names=schema.names,
            max_columns=schema.max_columns,
            declared=declared,
        )

    def _declared_columns(self) -> tuple[DeclaredColumn, ...]:
        schema = self.settings.schema
        if not schema.file:
            return ()
        try:
            data = self.store.read(schema.file)
        except ObjectNotFound as exc:
            raise SettingsError([f'schema.file: "{schema.file}": no such object -> expected a schema file']) from exc
        return parse_schema_file(data, schema.file, names=schema.names, max_columns=schema.max_columns)

    @cached_property
    def limits(self) -> Limits:
        return Limits(
            max_line_bytes=self.settings.input.max_line_bytes,
            max_decompressed_bytes=self.settings.input.max_decompressed_bytes,
        )

    @cached_property
    def verifier(self) -> Verifier:
        return Verifier(self.store, self.layout, self.ledger, self.registry)

    @cached_property
    def deep_check(self) -> DeepCheck:
        return DeepVerifier(self.store, self.registry, self.limits).check

    @cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.store, self.layout, self.clock, self.run_id, MachineProcesses().this())

    @cached_property
    def planner(self) -> Planner:
        settings = self.settings
        return Planner(
            state=self.state,
            claimer=self.claimer,
            allowed_prefixes=settings.input.allowed_prefixes,
            target_bytes=self.manifest_bytes,
            on_crash_point=self.on_crash_point,
        )

    @cached_property
    def cleaner(self) -> Cleaner:
        return Cleaner(self.state, Retention(self.state, self.runs.living_among))

    @cached_property
    def claims_if_any(self) -> ClaimTable | None:
        """The claims; None where the settings name no place for them, so that nobody plans."""
        try:
            return self.claims
        except SettingsError:
            return None

    @cached_property
    def redrive_log(self) -> RedriveLog:
        return RedriveLog(self.store, self.layout, self.ledger)

    @cached_property
    def redrive_scan(self) -> RedriveScan:
        return RedriveScan(self.store, self.layout, self.ledger, self.redrive_log)

    def redriver(self, *, on_crash_point: OnRedriveCrashPoint = ignore_redrive_crash_point) -> Redriver:
        """What puts back what was set aside."""
        allowed_prefixes = self.settings.input.allowed_prefixes
        lease_seconds = self.settings.builder.claim_lease_seconds
        redrive_planner = RedrivePlanner(
            store=self.store,
            layout=self.layout,
            ledger=self.ledger,
            claims=RedriveClaims(self.claims_if_any, self.clock, lease_seconds),
            search=FileSearch(state=self.state, allowed_prefixes=allowed_prefixes),
            allowed_prefixes=allowed_prefixes,
        )
        return Redriver(
            store=self.store,
            layout=self.layout,
            ledger=self.ledger,
            redrive_log=self.redrive_log,
            redrive_planner=redrive_planner,
            clock=self.clock,
            on_crash_point=on_crash_point,
        )

    @cached_property
    def tracer(self) -> Tracer:
        return Tracer(
            self.store,
            self.layout,
            self.ledger,
            self.redrive_log,
            self.claims_if_any,
            self.clock,
            allowed_prefixes=self.settings.input.allowed_prefixes,
        )

    @cached_property
    def status_reader(self) -> StatusReader:
        """What tells how the job stands."""
        control, builder = self.settings.control, self.settings.builder
        is_on_glue = is_s3(self.layout.state)
        return StatusReader(
            store=self.store,
            layout=self.layout,
            ledger=self.ledger,
            runs=self.runs,
            redrive_log=self.redrive_log,
            clock=self.clock,
            rules=Rules(
                sla_seconds=control.sla_seconds,
                stall_seconds=control.stall_seconds,
                max_wait_seconds=builder.max_wait_seconds,
                is_on_glue=is_on_glue,
            ),
            allowed_prefixes=self.settings.input.allowed_prefixes,
            registry=lambda: self._registry(()),
            glue=(lambda: ControlComponents(self.settings).job) if is_on_glue else None,
        )

    @cached_property
    def spark(self) -> Any:
        """The Spark session; starts Spark."""
        from compactor.adapters.spark.session import open_session  # noqa: PLC0415 - most commands need no Spark

        settings = self.settings
        uses_s3 = any(map(is_s3, (settings.paths.state, *settings.input.allowed_prefixes)))
        properties = spark_properties(
            master=settings.spark.master,
            conf=settings.spark.conf,
            region=settings.aws.region,
            endpoint_url=settings.aws.endpoint_url,
            timeout_seconds=settings.aws.timeout_seconds,
            uses_s3=uses_s3,
            is_master_given=master_is_given(os.environ),
        )
        return open_session(settings.spark.master, properties, uses_s3=uses_s3)

    def service(self) -> Service:
        """The streaming job, on Spark.

        Raises:
            SettingsError: The schema file is wrong, or contradicts what is on record. Spark was not started then.
        """
        self.job_registry.check_declared()
        return self.service_on(self.engine(), self._spark_source())

    def threaded_service(self, threads: int) -> Service:
        """The job without Spark: the native engine in threads of this process.

        Args:
            threads: How many output files are written at once.

        Raises:
            SettingsError: The schema file is wrong, or contradicts what is on record.
        """
        from compactor.adapters.local.thread_workers import ThreadBinWorkers  # noqa: PLC0415 - most commands write no rows

        self.job_registry.check_declared()
        in_flight = self.settings.stream.manifests_in_flight
        source = ListedManifests(self.store, self.layout.manifests_folder, batch_size=in_flight)
        return self.service_on(self.native_engine(ThreadBinWorkers(self.store, threads=threads)), source)

    def service_on(self, engine: Engine, source: ManifestSource) -> Service:
        """The job on a given engine and stream."""
        runner = self.batch_runner(engine)
        return Service(
            state=self.state,
            runner=runner,
            recovery=Recovery(self.state, runner, self.cleaner),
            retention=DailyRetention(self.state, self.cleaner, archive_days=self.settings.retention.archive_days),
            source=source,
            runs=self.runs,
            heartbeat=self.heartbeat,
            metrics=self.metrics,
            target_file_bytes=self.settings.output.target_file_bytes,
        )

    def batch_runner(self, engine: Engine) -> BatchRunner:
        """What works through the manifests of a micro-batch, with a given engine."""
        settings = self.settings
        rules = CompactionRules(
            max_attempts=settings.stream.max_attempts,
            metadata_columns=settings.schema.metadata_columns,
            manifests_in_flight=settings.stream.manifests_in_flight,
            limits=self.limits,
        )
        stager = Stager(
            state=self.state,
            engine=engine,
            registry=self.job_registry,
            history=self.history,
            rules=rules,
            on_crash_point=self.on_crash_point,
        )
        compactor = ManifestCompactor(
            state=self.state,
            stager=stager,
            publisher=Publisher(self.state, self.on_crash_point),
            history=self.history,
            failures=AttemptFailures(self.ledger, engine.is_healthy),
            max_attempts=rules.max_attempts,
            living_runs=lambda run_ids: self.runs.living_among(run_ids) | {self.run_id},
            on_crash_point=self.on_crash_point,
        )
        intake = Intake(
            state=self.state,
            allowed_prefixes=settings.input.allowed_prefixes,
            leave_others=self.leave_others,
            on_crash_point=self.on_crash_point,
        )
        return BatchRunner(
            intake=intake,
            ledger=self.ledger,
            compactor=compactor,
            manifests_in_flight=rules.manifests_in_flight,
            on_result=self.on_result,
        )

    def engine(self) -> Engine:
        """The engine that the settings name; either works on Spark's executors.

        Raises:
            SettingsError: The native engine was asked for, and is not installed.
        """
        return self._native_engine() if self.engine_name == "native" else self._spark_engine()

    @cached_property
    def engine_name(self) -> EngineName:
        """What the ledger will call the engine."""
        name = engine_of(self.settings.convert)
        if name == "native" and not is_installed():
            raise SettingsError(
                ['convert.engine: "native": its wheel is not installed -> expected it, or "spark" or "auto"']
            )
        return name

    def native_engine(self, workers: BinWorkers) -> NativeEngine:
        """The engine that takes one pass.

        Args:
            workers: What does its tasks.
        """
        settings = self.settings
        return NativeEngine(
            workers,
            NativeRules(
                limits=self.limits,
                on_changed_file=settings.input.on_changed_file,
                metadata_columns=settings.schema.metadata_columns,
                target_file_bytes=settings.output.target_file_bytes,
                compression=settings.output.compression,
            ),
            self.store,
        )

    def _native_engine(self) -> Engine:
        from compactor.adapters.spark.bin_workers import SparkBinWorkers  # noqa: PLC0415

        return self.native_engine(SparkBinWorkers(self.spark, self.store_spec))

    def _spark_engine(self) -> Engine:
        from compactor.adapters.spark.engine import ConvertRules, SparkEngine  # noqa: PLC0415
        from compactor.adapters.spark.inspection_tasks import InspectRules  # noqa: PLC0415

        settings = self.settings
        return SparkEngine(
            self.spark,
            store=self.store,
            store_spec=self.store_spec,
            inspect_rules=InspectRules(
                limits=self.limits,
                on_changed_file=settings.input.on_changed_file,
            ),
            convert_rules=ConvertRules(
                discovery=settings.input.discovery,
                metadata_columns=settings.schema.metadata_columns,
                target_file_bytes=settings.output.target_file_bytes,
                compression=settings.output.compression,
            ),
        )

    def _spark_source(self) -> ManifestSource:
        from compactor.adapters.spark.stream import SparkManifestSource  # noqa: PLC0415

        starts = itertools.count(1)
        stream = self.settings.stream
        return SparkManifestSource(
            self.spark,
            manifests=self.layout.manifests,
            new_checkpoint=lambda: self.layout.checkpoint(f"{self.run_id}-{next(starts)}"),
            max_manifests_per_trigger=stream.max_manifests_per_trigger,
            trigger_interval_seconds=stream.trigger_interval_seconds,
        )

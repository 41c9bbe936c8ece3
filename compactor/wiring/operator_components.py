"""Puts together what the commands of operators use: they read records, and start no job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from compactor.adapters.local.native.kernel import NativeGrok, digest_kernel, is_installed
from compactor.adapters.logs import kafka_of, kinesis_of
from compactor.core.crash_points import (
    OnChangeCrashPoint,
    OnRedriveCrashPoint,
    ignore_change_crash_point,
    ignore_redrive_crash_point,
)
from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.layout import is_s3
from compactor.core.logs.names import KAFKA, RECORD_KEYS, RECORD_TYPES
from compactor.core.logs.ports import KafkaLog, Log
from compactor.core.ports import ClaimTable
from compactor.ndjson.lines import Limits, RejectLimits
from compactor.schema.catalog import CatalogTable, Published, catalog_columns, published
from compactor.schema.registry import SchemaRegistry, partition_faults
from compactor.schema.schema import ColumnLimits, DeclaredColumn
from compactor.schema.schema_file import parse_schema_file
from compactor.settings.sections import retry_rules
from compactor.settings.settings import Settings
from compactor.table.catalog import TableCatalog
from compactor.table.standing import ListedTable
from compactor.upkeep.cleaner import Cleaner
from compactor.upkeep.expiring import BY_JOB, Expirer
from compactor.upkeep.retention import Retention
from compactor.wiring.components import Components
from compactor.wiring.engine_choice import engine_of
from compactor.wiring.grok_reader import GrokReader, grok_reader, with_declared

# Each command needs one of these, and a short command would wait for all of them to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.ops.closing.closer import Closer
    from compactor.ops.rebuild.damaged import RebuildScanner
    from compactor.ops.redrive.redriver import Redriver
    from compactor.ops.rejects.reader import RejectsReader
    from compactor.ops.status.reading import StatusReader
    from compactor.ops.trace.tracer import Tracer
    from compactor.ops.verify.verifier import ComparedBytes, OnManifest, Verifier


_OF_GLUE = "_table"  # hidden from readers of the plain files below the output


def iceberg_catalog(settings: Settings) -> TableCatalog:
    """The catalog in the settings, which is connected to when it is first used.

    Raises:
        ExtraMissing: pyiceberg is not installed, or for Glue and S3 Tables boto3.
    """
    from compactor.adapters.iceberg.iceberg_table import IcebergTable
    from compactor.adapters.iceberg.opening import CatalogPlace

    table, aws = settings.table, settings.aws
    place = CatalogPlace(
        kind=table.catalog,
        uri=table.uri,
        warehouse=table.warehouse,
        region=aws.region,
        properties={"s3.endpoint": aws.endpoint_url} if aws.endpoint_url else {},
    )
    # Glue asks for the place of a new table; other catalogs choose one in their warehouse.
    location = f"{settings.paths.output.rstrip('/')}/{_OF_GLUE}" if table.catalog == "glue" else ""
    return IcebergTable(place=place, name=table.name, metadata_columns=settings.metadata_columns, location=location)


CATALOG_SECONDS = 5.0
CATALOG_ATTEMPTS = 2
"""The job does not stop while it waits for the catalog, so it gives up soon; it tries again later."""


class OperatorComponents(Components):
    """The components of the commands of operators."""

    @property
    def has_table(self) -> bool:
        """Whether the output is listed in a table."""
        return self.settings.output.table == "iceberg"

    @cached_property
    def table_catalog(self) -> TableCatalog:
        """The catalog with the table of the output.

        Raises:
            ExtraMissing: Packages that it needs are not installed.
        """
        return iceberg_catalog(self.settings)

    @property
    def listed_table(self) -> ListedTable | None:
        """The table of the output; None if the settings name none."""
        if not self.has_table:
            return None
        table, control = self.settings.table, self.settings.control
        upkeep = {"maintain": table.maintain_hours, "merge": table.merge_hours}
        return ListedTable(
            name=table.name,
            catalog=lambda: self.table_catalog,
            late_seconds=table.commit_seconds + control.stall_seconds,
            shards=control.shards,
            upkeep=tuple(name for name, hours in upkeep.items() if hours),
        )

    @cached_property
    def kafka(self) -> KafkaLog:
        """The topics of the clusters."""
        of = self.settings.kafka
        return kafka_of(of.clusters, with_columns=bool(of.record_columns))

    @cached_property
    def kinesis(self) -> Log:
        """The Kinesis streams of the sources."""
        return kinesis_of(self.settings.kinesis.sources, self.store_spec)

    @cached_property
    def grok(self) -> GrokReader | None:
        """How lines of text become records; None if lines are JSON.

        Raises:
            SettingsError: The pattern has faults, or what compiles it is not installed.
        """
        return grok_reader(self.settings)

    @cached_property
    def registry(self) -> SchemaRegistry:
        """The recorded schema versions, for reading. The schema file does not matter."""
        return self._registry(())

    @cached_property
    def job_registry(self) -> SchemaRegistry:
        """The schema versions for making new ones, with the columns of the schema file and of the pattern of lines.

        Raises:
            SettingsError: The schema file or the pattern has faults, or partitions cannot be told by its columns.
        """
        declared = self._declared_columns()
        if self.grok is not None:
            declared = self._with_columns(declared, self.grok.types, "input.grok")
        of_records = {RECORD_KEYS[each]: RECORD_TYPES[each] for each in self.settings.kafka.record_columns}
        if of_records and self._reads_topics:
            declared = self._with_columns(declared, of_records, "kafka.record_columns")
        fields = self.settings.partition_fields
        if faults := list(partition_faults(fields, declared, has_table=self.has_table)):
            raise SettingsError(faults)
        return self._registry(declared, [field.name for field in fields])

    @property
    def _reads_topics(self) -> bool:
        return any(each.startswith(f"{KAFKA}://") for each in self.settings.input.allowed_prefixes)

    def _with_columns(
        self, declared: tuple[DeclaredColumn, ...], types: Mapping[str, str], setting: str
    ) -> tuple[DeclaredColumn, ...]:
        return with_declared(declared, types, self.settings.schema.names, self.registry.latest(), setting)

    def _registry(self, declared: Sequence[DeclaredColumn], reserved: Sequence[str] = ()) -> SchemaRegistry:
        schema = self.settings.schema
        return SchemaRegistry(
            self.store,
            self.layout,
            self.clock,
            names=schema.names,
            limits=ColumnLimits(
                max_columns=schema.max_columns,
                max_new_per_manifest=schema.max_new_columns_per_manifest,
                max_new_per_day=schema.max_new_columns_per_day,
                max_key_characters=schema.max_key_characters,
            ),
            declared=declared,
            reserved=reserved,
            rescued_keys=frozenset(RECORD_KEYS.values()) if self._reads_topics else (),
        )

    @cached_property
    def catalog_table(self) -> CatalogTable | None:
        """The table of the output in the Glue Data Catalog; None if the settings name none."""
        if not self.settings.schema.table:
            return None
        from compactor.adapters.aws.glue_table import GlueTable  # boto3 is slow to load

        database, table = self.settings.schema.table.split(".")
        spec = replace(self.store_spec, timeout_seconds=CATALOG_SECONDS, attempts=CATALOG_ATTEMPTS)
        return GlueTable(client=spec.client("glue"), database=database, table=table)

    def publish_columns(self) -> Published:
        """Add the columns of the latest schema version to the table in the Glue Data Catalog.

        Raises:
            SettingsError: The settings name no table.
        """
        if self.catalog_table is None:
            raise SettingsError(['schema.table: "" -> expected the Glue table of the output, as database.table'])
        schema = self.registry.latest()
        differed = self.catalog_table.add(catalog_columns(schema, self.settings.metadata_columns))
        return published(self.catalog_table.name, schema.version, differed)

    def _declared_columns(self) -> tuple[DeclaredColumn, ...]:
        schema = self.settings.schema
        if not schema.file:
            return ()
        try:
            data = self.store.read(schema.file)
        except ObjectNotFound as exc:
            raise SettingsError([f'schema.file: "{schema.file}": no such object -> expected a schema file']) from exc
        return self._parsed_schema(data, schema.file)

    def check_schema_file(self, data: bytes, uri: str) -> None:
        """Check a schema file that is not in use yet.

        Raises:
            SettingsError: Lists its faults, or every contradiction to the recorded columns.
        """
        self._registry(self._parsed_schema(data, uri)).check_declared()

    def _parsed_schema(self, data: bytes, uri: str) -> tuple[DeclaredColumn, ...]:
        schema = self.settings.schema
        return parse_schema_file(
            data,
            uri,
            names=schema.names,
            max_columns=schema.max_columns,
            max_key_characters=schema.max_key_characters,
            refused=self.settings.refused_types,
        )

    @cached_property
    def limits(self) -> Limits:
        settings = self.settings
        return Limits(
            max_line_bytes=settings.input.max_line_bytes,
            max_decompressed_bytes=settings.input.max_decompressed_bytes,
            rejects=RejectLimits(
                max_lines=settings.input.max_rejected_lines,
                max_bytes=settings.input.max_rejected_bytes,
                on_excess=settings.input.on_too_many_rejects,
            ),
            max_scratch_bytes=settings.input.max_scratch_bytes,
        )

    def verifier(
        self,
        *,
        deep: bool = False,
        on_manifest: "OnManifest | None" = None,
        compared: "ComparedBytes | None" = None,
    ) -> "Verifier":
        """Make what verifies the output; with `deep` it compares values as well."""
        from compactor.ops.verify.verifier import Verifier

        return Verifier(
            state=self.state,
            registry=self.registry,
            decoder_of=NativeGrok,
            table=self.listed_table,
            deep=deep,
            new_kernel=digest_kernel if is_installed() else None,
            on_manifest=on_manifest,
            compared=compared,
        )

    def closer(self, on_date: Callable[[str], None] = lambda _: None) -> "Closer":
        """Make what closes dates."""
        from compactor.ops.closing.closer import Closer

        return Closer(
            state=self.state,
            verifier=self.verifier(),
            close_after=timedelta(days=self.settings.retention.close_after_days),
            on_date=on_date,
        )

    def close_quiet_dates(self) -> None:
        """Close what has been quiet, if an operator has closed dates here before."""
        closer = self.closer()
        if closer.has_begun():
            closer.close()

    def retiring_expirer(self, who: str, *, on_crash_point: OnChangeCrashPoint = ignore_change_crash_point) -> Expirer:
        """Make what removes retired dates, and puts on record who did.

        Raises:
            SettingsError: A table lists the files that would go.
        """
        if self.settings.output.table != "none":
            because = "because the table would go on listing the files of retired dates"
            raise SettingsError([f'output.table: "{self.settings.output.table}" -> expected "none", {because}'])
        return Expirer(self.state, who, on_crash_point)

    def rebuild_scanner(self) -> "RebuildScanner":
        """Make what finds the manifests to rebuild."""
        from compactor.ops.rebuild.damaged import RebuildScanner
        from compactor.ops.verify.files import CommitFiles

        return RebuildScanner(state=self.state, files=CommitFiles(state=self.state, registry=self.registry))

    @cached_property
    def cleaner(self) -> Cleaner:
        return self.cleaner_of(BY_JOB)

    def cleaner_of(self, who: str) -> Cleaner:
        """Make what deletes what has expired, and puts on record who did."""
        retention = Retention(self.state, self.runs.living_among)
        return Cleaner(self.state, retention, Expirer(self.state, who), has_table=self.has_table)

    @cached_property
    def claims_if_any(self) -> ClaimTable | None:
        """The claims; None if the settings name no place for them, so that nothing is ever planned."""
        try:
            return self.claims
        except SettingsError:
            return None

    def redriver(self, *, on_crash_point: OnRedriveCrashPoint = ignore_redrive_crash_point) -> "Redriver":
        """Make what redrives dead letters, quarantined files and rejected lines."""
        from compactor.ops.redrive.planner import RedriveClaims, RedrivePlanner
        from compactor.ops.redrive.redriver import Redriver
        from compactor.ops.redrive.reject_lines import Recheck
        from compactor.sources.file_search import FileSearch

        allowed_prefixes = self.settings.input.allowed_prefixes
        lease_seconds = self.settings.builder.claim_lease_seconds
        redrive_planner = RedrivePlanner(
            state=self.state,
            claims=RedriveClaims(claims=self.claims_if_any, clock=self.clock, lease_seconds=lease_seconds),
            search=FileSearch(state=self.state, allowed_prefixes=allowed_prefixes),
            allowed_prefixes=allowed_prefixes,
        )
        recheck = Recheck(
            max_line_bytes=self.settings.input.max_line_bytes,
            has_one_parser=engine_of(self.settings.convert) == "native",
            grok=self.grok.decoder if self.grok else None,
        )
        return Redriver(
            state=self.state, redrive_planner=redrive_planner, recheck=recheck, on_crash_point=on_crash_point
        )

    def rejects_reader(
        self, on_unreadable: Callable[[str], None], on_expired: Callable[[str, int], None] = lambda _why, _rows: None
    ) -> "RejectsReader":
        """Make what reads rejected lines; it calls a function with each thing that it cannot read, or that expired."""
        from compactor.ops.rejects.reader import RejectsReader

        return RejectsReader(state=self.state, on_unreadable=on_unreadable, on_expired=on_expired)

    @cached_property
    def tracer(self) -> "Tracer":
        from compactor.ops.trace.tracer import Tracer
        from compactor.sources.file_search import FileSearch

        allowed_prefixes = self.settings.input.allowed_prefixes
        return Tracer(
            state=self.state,
            rules=retry_rules(self.settings.stream),
            search=FileSearch(state=self.state, allowed_prefixes=allowed_prefixes, skip_unreadable=True),
            claims=self.claims_if_any,
            table=self.listed_table,
        )

    @cached_property
    def status_reader(self) -> "StatusReader":
        """Reads how the job is doing."""
        from compactor.ops.status.health import Rules
        from compactor.ops.status.reading import StatusReader

        control, builder = self.settings.control, self.settings.builder
        return StatusReader(
            state=self.state,
            runs=self.runs,
            rules=Rules(
                sla_seconds=self.settings.sla_seconds,
                stall_seconds=control.stall_seconds,
                max_wait_seconds=builder.max_wait_seconds,
                is_on_glue=is_s3(self.layout.state),
                shards=control.shards,
                suggest=self.settings.suggestions,
            ),
            allowed_prefixes=self.settings.input.allowed_prefixes,
            target_file_bytes=self.settings.output.target_file_bytes,
            registry=lambda: self._registry(()),
            table=self.listed_table,
            logs=self.log_watch(),
        )

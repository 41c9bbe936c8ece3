"""Opens what only some kinds of processes have packages for: tables, topics, streams, patterns and Spark."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compactor.core.documents.changes import GrokRules
from compactor.core.errors import SettingsError
from compactor.core.logs.ports import KafkaLog, Log
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import RESERVED_NAMES
from compactor.schema.schema_of_settings import new_versions
from compactor.settings.settings import Settings
from compactor.table.catalog import TableCatalog
from compactor.wiring.app import App

# Each of these is slow to load, and may not be installed.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.adapters.local.native.kernel import NativeGrok

_OF_GLUE = "_table"  # hidden from readers of plain files in the output
_TYPES = {
    "": "",
    "string": "string",
    **dict.fromkeys(("byte", "short", "int", "long"), "long"),
    **dict.fromkeys(("float", "double"), "double"),
    "boolean": "boolean",
}
"""Column types by capture type. An empty one leaves the type to the schema file."""


def table_catalog(app: App) -> TableCatalog:
    """The catalog with the output's table, connected on first use.

    Raises:
        ExtraMissing: pyiceberg is not installed, or for Glue and S3 Tables boto3.
    """
    return app.opened("table_catalog", lambda: _iceberg_table(app))


def _iceberg_table(app: App) -> TableCatalog:
    from compactor.adapters.iceberg.iceberg_table import IcebergTable
    from compactor.adapters.iceberg.opening import CatalogPlace

    settings, table, aws = app.settings, app.settings.table, app.settings.aws
    place = CatalogPlace(
        kind=table.catalog,
        uri=table.uri,
        warehouse=table.warehouse,
        region=aws.region,
        properties={"s3.endpoint": aws.endpoint_url} if aws.endpoint_url else {},
    )
    # Glue requires a new table's place; other catalogs choose one in their warehouse.
    location = f"{settings.paths.output.rstrip('/')}/{_OF_GLUE}" if table.catalog == "glue" else ""
    columns = settings.metadata_columns
    return IcebergTable(place=place, name=table.name, metadata_columns=columns, location=location)


def kafka_log(app: App) -> KafkaLog:
    """The clusters' topics."""
    from compactor.adapters.logs import kafka_of

    of = app.settings.kafka
    return app.opened("kafka_log", lambda: kafka_of(of.clusters, with_columns=bool(of.record_columns)))


def kinesis_log(app: App) -> Log:
    """The sources' Kinesis streams."""
    from compactor.adapters.logs import kinesis_of

    return app.opened("kinesis_log", lambda: kinesis_of(app.settings.kinesis.sources, app.store_spec))


@dataclass(frozen=True, slots=True)
class GrokReader:
    """How lines of text become records.

    Attributes:
        decoder: Decodes them in any process.
        types: Each key's column type, in the order of the pattern; empty if the pattern gives none.
    """

    decoder: "NativeGrok"
    types: dict[str, str]

    @property
    def rules(self) -> GrokRules:
        return self.decoder.rules


def grok_reader(settings: Settings) -> GrokReader | None:
    """Create a stream's reader of lines; None if they are JSON.

    Raises:
        SettingsError: The pattern has faults, or its compiler is not installed.
    """
    from compactor.adapters.local.native.kernel import NativeGrok, expanded
    from compactor.adapters.local.native.module import why_not_installed

    grok = settings.grok
    if grok is None:
        return None
    if why := why_not_installed():
        raise SettingsError([f'input.format: "grok": {why} -> install it, as both engines need it for patterns'])
    try:
        regex, captures = expanded(grok.pattern, grok.patterns)
    except ValueError as exc:
        raise SettingsError([f"input.grok: {exc}"]) from exc
    if faults := list(_faults(captures)):
        raise SettingsError(faults)
    rules = GrokRules(regex=regex, keys=tuple(key for key, _ in captures), max_steps=grok.max_steps)
    return GrokReader(NativeGrok(rules), {key: _TYPES[kind] for key, kind in captures})


def _faults(captures: Iterable[tuple[str, str]]) -> Iterator[str]:
    for key, kind in dict(captures).items():
        if key.lower() in RESERVED_NAMES:
            yield f"input.grok: a capture is named {key} -> expected a name that is not reserved"
        if kind not in _TYPES:
            yield f"input.grok: {key} is of type {kind} -> expected {', '.join(filter(None, _TYPES))}, or none"


def grok_reader_of(app: App) -> GrokReader | None:
    """The reader of text lines, whose pattern is compiled once; None if lines are JSON.

    Raises:
        SettingsError: The pattern has faults, or its compiler is not installed.
    """
    return app.opened("grok_reader", lambda: grok_reader(app.settings))


def job_registry(app: App) -> SchemaRegistry:
    """A registry for creating schema versions, with the columns from the schema file and the line pattern.

    Raises:
        SettingsError: The schema file or the pattern has faults, or its columns do not suffice for the partitions.
    """

    def made() -> SchemaRegistry:
        grok = grok_reader_of(app)
        return new_versions(app.settings, app.store, app.clock, app.registry, grok.types if grok else {})

    return app.opened("job_registry", made)


def spark_session(app: App) -> Any:
    """The Spark session. Its first use starts Spark."""
    from compactor.wiring.engine_choice import converts_on_spark
    from compactor.wiring.spark import opened

    return app.opened("spark", lambda: opened(app.settings, converts_rows=converts_on_spark(app.settings)))

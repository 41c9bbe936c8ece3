"""Opens what only some kinds of processes have the packages for: tables, topics, streams, patterns and Spark."""

from typing import TYPE_CHECKING, Any

from compactor.core.logs.ports import KafkaLog, Log
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema_of_settings import new_versions
from compactor.table.catalog import TableCatalog
from compactor.wiring.app import App

# Each of these takes long to load, and may not be installed.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.wiring.grok_reader import GrokReader

_OF_GLUE = "_table"  # hidden from readers of the plain files below the output


def table_catalog(app: App) -> TableCatalog:
    """The catalog with the table of the output, which is connected to when it is first used.

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
    # Glue asks for the place of a new table; other catalogs choose one in their warehouse.
    location = f"{settings.paths.output.rstrip('/')}/{_OF_GLUE}" if table.catalog == "glue" else ""
    columns = settings.metadata_columns
    return IcebergTable(place=place, name=table.name, metadata_columns=columns, location=location)


def kafka_log(app: App) -> KafkaLog:
    """The topics of the clusters."""
    from compactor.adapters.logs import kafka_of

    of = app.settings.kafka
    return app.opened("kafka_log", lambda: kafka_of(of.clusters, with_columns=bool(of.record_columns)))


def kinesis_log(app: App) -> Log:
    """The Kinesis streams of the sources."""
    from compactor.adapters.logs import kinesis_of

    return app.opened("kinesis_log", lambda: kinesis_of(app.settings.kinesis.sources, app.store_spec))


def grok_reader_of(app: App) -> "GrokReader | None":
    """What reads lines of text, whose pattern is compiled once; None if lines are JSON.

    Raises:
        SettingsError: The pattern has faults, or what compiles it is not installed.
    """
    from compactor.wiring.grok_reader import grok_reader

    return app.opened("grok_reader", lambda: grok_reader(app.settings))


def job_registry(app: App) -> SchemaRegistry:
    """The schema versions for making new ones, with the columns of the schema file and of the pattern of lines.

    Raises:
        SettingsError: The schema file or the pattern has faults, or partitions cannot be told by its columns.
    """

    def made() -> SchemaRegistry:
        grok = grok_reader_of(app)
        return new_versions(app.settings, app.store, app.clock, app.registry, grok.types if grok else {})

    return app.opened("job_registry", made)


def spark_session(app: App) -> Any:
    """The Spark session. The first use starts Spark."""
    from compactor.wiring.engine_choice import converts_on_spark
    from compactor.wiring.spark import opened

    return app.opened("spark", lambda: opened(app.settings, converts_rows=converts_on_spark(app.settings)))

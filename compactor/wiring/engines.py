"""Creates the configured engine."""

from dataclasses import replace

from compactor.adapters.local.native.kernel import native_scanner
from compactor.adapters.local.native.module import is_installed
from compactor.core.inputs.record_place import AUTO
from compactor.engines.engine import Engine, EngineRules
from compactor.engines.native.engine import BinWorkers, NativeEngine
from compactor.ndjson.kinds.element_splitting import ElementScanner
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice, installed_engine
from compactor.wiring.opening import GrokReader, grok_reader_of, spark_session

# pyspark is slow to load, and most commands need no Spark.
# ruff: noqa: PLC0415

MAX_PARTITIONS = 1000
"""The most partitions of a manifest with files of their own: each is a file at least, and readers open every file."""


def engine_rules(app: App) -> EngineRules:
    """The engine rules in the settings."""
    settings = app.settings
    grok = grok_reader_of(app)
    return EngineRules(
        limits=Limits.of(settings),
        on_changed_file=settings.input.on_changed_file,
        metadata_columns=settings.metadata_columns,
        target_file_bytes=settings.output.target_file_bytes,
        compression=settings.output.compression,
        formats=replace(formats_of(settings, grok), lines_folder=app.layout.redriven_folder),
    )


def formats_of(settings: Settings, grok: GrokReader | None) -> Formats:
    """Which files are read, and how; with the native engine, its scanner finds records in documents."""
    is_native = engine_choice(settings.convert).name == "native" and is_installed()
    return Formats(
        settings.input.format,
        place=settings.record_place,
        finds_place=settings.input.records == AUTO,
        grok=grok.decoder if grok else None,
        new_scanner=native_scanner if is_native else ElementScanner,
    )


def engine(app: App, rules: EngineRules | None = None) -> Engine:
    """Create the configured engine, with its rules or with others. It runs on Spark's executors.

    Raises:
        SettingsError: The settings require the native engine, which is not installed.
    """
    if installed_engine(app.settings) == "native":
        from compactor.adapters.spark.executor_tasks import SparkBinWorkers

        return native_engine(app, SparkBinWorkers(session=spark_session(app), store_spec=app.store_spec), rules)
    from compactor.adapters.spark.engine import SparkEngine

    return partitioned(
        app,
        SparkEngine(
            session=spark_session(app),
            store=app.store,
            store_spec=app.store_spec,
            rules=rules or engine_rules(app),
            discovery=app.settings.input.discovery,
        ),
    )


def native_engine(app: App, workers: BinWorkers, rules: EngineRules | None = None) -> Engine:
    """Create the native engine on given workers, with the configured rules or with others."""
    return partitioned(app, NativeEngine(workers=workers, rules=rules or engine_rules(app), store=app.store))


def partitioned(app: App, engine: Engine) -> Engine:
    """The engine itself, or one that partitions its files as configured."""
    output, fields = app.settings.output, app.settings.partition_fields
    if not fields:
        return engine
    from compactor.engines.partitioned.counting import PartitionRules
    from compactor.engines.partitioned.engine import PartitionedEngine

    rules = PartitionRules(fields, MAX_PARTITIONS, output.target_file_bytes, output.compression)
    return PartitionedEngine(engine=engine, store=app.store, rules=rules)

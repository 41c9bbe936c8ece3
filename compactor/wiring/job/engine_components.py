"""Makes the engine that the settings name, and the Spark session: a new one, or one beside that of the caller."""

import os
import sys
from functools import cached_property
from typing import Any

from compactor.adapters.local.native.kernel import is_installed, why_not_installed
from compactor.core.errors import SettingsError
from compactor.core.extras import need
from compactor.core.layout import is_s3
from compactor.engines.engine import Engine, EngineName, EngineRules
from compactor.engines.native.engine import BinWorkers, NativeEngine
from compactor.ndjson.kinds.formats import Formats
from compactor.ops.doctor.java import java_fault
from compactor.settings.settings import Settings
from compactor.settings.spark_conf import is_submitted, master_is_given, spark_properties
from compactor.wiring.engine_choice import EngineChoice, engine_choice
from compactor.wiring.operator_components import OperatorComponents

# pyspark is slow to load, and most commands need no Spark.
# ruff: noqa: PLC0415


def opened(settings: Settings, *, converts_rows: bool) -> Any:
    """Start Spark with the properties of the settings: one that `converts_rows`, or one that only schedules tasks."""
    from compactor.adapters.spark.session import open_session

    return open_session(
        settings.spark.master, _properties(settings, converts_rows=converts_rows), uses_s3=_uses_s3(settings)
    )


def joined(settings: Settings, session: Any) -> Any:
    """A session beside that of the caller, on the same Spark, with the properties that the engine needs.

    Raises:
        SettingsError: It is a session of Spark Connect, which has no executors to send tasks to.
    """
    from compactor.adapters.spark.session import session_beside

    # The JVM runs already, so that nothing but properties of a session counts.
    return session_beside(session, _properties(settings, converts_rows=True))


def running() -> Any | None:
    """The session that this process has opened already; None if there is none."""
    if "pyspark" not in sys.modules:
        return None
    from compactor.adapters.spark.session import running_session

    return running_session()


def _properties(settings: Settings, *, converts_rows: bool) -> dict[str, str]:
    return spark_properties(
        master=settings.spark.master,
        conf=settings.spark.conf,
        region=settings.aws.region,
        endpoint_url=settings.aws.endpoint_url,
        timeout_seconds=settings.aws.timeout_seconds,
        uses_s3=_uses_s3(settings),
        is_master_given=master_is_given(os.environ),
        converts_rows=converts_rows,
    )


def _uses_s3(settings: Settings) -> bool:
    return any(map(is_s3, (settings.paths.state, *settings.input.allowed_prefixes)))


def check_java() -> None:
    """Check that Spark can start.

    Raises:
        ExtraMissing: pyspark is not installed.
        SettingsError: There is no Java, or a version that Spark does not support.
    """
    need("spark")
    # spark-submit and Glue start the driver from a JVM.
    fault = None if is_submitted(os.environ) else java_fault(os.environ)
    if fault:
        raise SettingsError([fault])


class EngineComponents(OperatorComponents):
    """The components that write rows."""

    @cached_property
    def spark(self) -> Any:
        """The Spark session. The first use starts Spark."""
        return opened(self.settings, converts_rows=self.converts_on_spark)

    @cached_property
    def converts_on_spark(self) -> bool:
        """Whether Spark converts rows; else it only schedules tasks."""
        return self.engine_choice.name == "spark"

    def engine(self, rules: EngineRules | None = None) -> Engine:
        """Make the engine that the settings choose, with their rules or with others. It runs on Spark's executors.

        Raises:
            SettingsError: The settings name the native engine, and it is not installed.
        """
        if self.engine_name == "native":
            from compactor.adapters.spark.executor_tasks import SparkBinWorkers

            return self.native_engine(SparkBinWorkers(session=self.spark, store_spec=self.store_spec), rules)
        from compactor.adapters.spark.engine import SparkEngine

        return self.partitioned(
            SparkEngine(
                session=self.spark,
                store=self.store,
                store_spec=self.store_spec,
                rules=rules or self.engine_rules,
                discovery=self.settings.input.discovery,
            )
        )

    @cached_property
    def engine_choice(self) -> EngineChoice:
        """The engine that the settings choose, and why."""
        return engine_choice(self.settings.convert)

    @cached_property
    def engine_name(self) -> EngineName:
        """The engine that the settings choose, by its name in the ledger."""
        name = self.engine_choice.name
        if name == "native" and not is_installed():
            raise SettingsError(
                [f'convert.engine: "native": {why_not_installed()} -> install one with it, or use "spark" or "auto"']
            )
        return name

    @cached_property
    def is_in_place(self) -> bool:
        """Whether files of rows are written under their final names, where a table lists them.

        Raises:
            SettingsError: The settings ask for it, and the engine cannot.
        """
        publish = self.settings.output.publish
        if not self.has_table or publish == "copy":
            return False
        if publish == "auto":
            return is_s3(self.layout.output) and self.engine_choice.name == "native"
        if self.engine_name != "native":
            why = f"the engine is {self.engine_choice.name} ({self.engine_choice.reason})"
            raise SettingsError([f'output.publish: "in_place" -> expected "copy" or "auto", because {why}'])
        return True

    @cached_property
    def engine_rules(self) -> EngineRules:
        settings = self.settings
        return EngineRules(
            limits=self.limits,
            on_changed_file=settings.input.on_changed_file,
            metadata_columns=settings.metadata_columns,
            target_file_bytes=settings.output.target_file_bytes,
            compression=settings.output.compression,
            formats=Formats(
                settings.input.format,
                lines_folder=self.layout.redriven_folder,
                grok=self.grok.decoder if self.grok else None,
            ),
        )

    def native_engine(self, workers: BinWorkers, rules: EngineRules | None = None) -> Engine:
        """Make the native engine on given workers, with the rules of the settings or with others."""
        return self.partitioned(NativeEngine(workers=workers, rules=rules or self.engine_rules, store=self.store))

    def partitioned(self, engine: Engine) -> Engine:
        """The engine itself, or one that divides its files as the settings say."""
        output, fields = self.settings.output, self.settings.partition_fields
        if not fields:
            return engine
        from compactor.engines.partitioned.counting import PartitionRules
        from compactor.engines.partitioned.engine import PartitionedEngine

        rules = PartitionRules(fields, output.max_partitions, output.target_file_bytes, output.compression)
        return PartitionedEngine(engine=engine, store=self.store, rules=rules)

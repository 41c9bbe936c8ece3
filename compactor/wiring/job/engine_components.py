"""Makes the engine that the settings name, and the Spark session."""

from functools import cached_property
from typing import Any

from compactor.adapters.local.native.kernel import is_installed, why_not_installed
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.engines.engine import Engine, EngineName, EngineRules
from compactor.engines.native.engine import BinWorkers, NativeEngine
from compactor.ndjson.kinds.formats import Formats
from compactor.wiring.engine_choice import EngineChoice, engine_choice
from compactor.wiring.job.spark_sessions import opened
from compactor.wiring.operator_components import OperatorComponents


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
            from compactor.adapters.spark.executor_tasks import SparkBinWorkers  # noqa: PLC0415

            return self.native_engine(SparkBinWorkers(session=self.spark, store_spec=self.store_spec), rules)
        from compactor.adapters.spark.engine import SparkEngine  # noqa: PLC0415

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
            kafka=self.kafka,
        )

    def native_engine(self, workers: BinWorkers, rules: EngineRules | None = None) -> Engine:
        """Make the native engine on given workers, with the rules of the settings or with others."""
        return self.partitioned(NativeEngine(workers=workers, rules=rules or self.engine_rules, store=self.store))

    def partitioned(self, engine: Engine) -> Engine:
        """The engine itself, or one that divides its files as the settings say."""
        output, fields = self.settings.output, self.settings.partition_fields
        if not fields:
            return engine
        from compactor.engines.partitioned.counting import PartitionRules  # noqa: PLC0415
        from compactor.engines.partitioned.engine import PartitionedEngine  # noqa: PLC0415 - only with partitions

        rules = PartitionRules(fields, output.max_partitions, output.target_file_bytes, output.compression)
        return PartitionedEngine(engine=engine, store=self.store, rules=rules)

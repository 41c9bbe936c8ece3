"""Makes the engine that the settings name, and the Spark session."""

import os
from functools import cached_property
from typing import Any

from compactor.adapters.local.native_kernel import is_installed, why_not_installed
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.engines.engine import Engine, EngineName, EngineRules
from compactor.engines.native_engine import BinWorkers, NativeEngine
from compactor.ndjson.formats import Formats
from compactor.settings.spark_conf import master_is_given, spark_properties
from compactor.wiring.engine_choice import EngineChoice, engine_choice
from compactor.wiring.operator_components import OperatorComponents


class EngineComponents(OperatorComponents):
    """The components that write rows."""

    @cached_property
    def spark(self) -> Any:
        """The Spark session. The first use starts Spark."""
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

    def engine(self, rules: EngineRules | None = None) -> Engine:
        """Make the engine that the settings choose, with their rules or with others. It runs on Spark's executors.

        Raises:
            SettingsError: The settings name the native engine, and it is not installed.
        """
        if self.engine_name == "native":
            from compactor.adapters.spark.bin_workers import SparkBinWorkers  # noqa: PLC0415

            return self.native_engine(SparkBinWorkers(session=self.spark, store_spec=self.store_spec), rules)
        from compactor.adapters.spark.engine import SparkEngine  # noqa: PLC0415

        return SparkEngine(
            session=self.spark,
            store=self.store,
            store_spec=self.store_spec,
            rules=rules or self.engine_rules,
            discovery=self.settings.input.discovery,
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
    def engine_rules(self) -> EngineRules:
        settings = self.settings
        return EngineRules(
            limits=self.limits,
            on_changed_file=settings.input.on_changed_file,
            metadata_columns=settings.schema.metadata_columns,
            target_file_bytes=settings.output.target_file_bytes,
            compression=settings.output.compression,
            formats=Formats(settings.input.format, lines_folder=self.layout.redriven_folder),
        )

    def native_engine(self, workers: BinWorkers, rules: EngineRules | None = None) -> NativeEngine:
        """Make the native engine on given workers, with the rules of the settings or with others."""
        return NativeEngine(workers=workers, rules=rules or self.engine_rules, store=self.store)

"""Opens the Spark session: a new one, or one on the caller's Spark."""

import os
import sys
from typing import Any

from compactor.core.errors import SettingsError
from compactor.core.extras import need
from compactor.core.layout import is_s3
from compactor.ops.doctor.java import java_fault
from compactor.settings.settings import Settings
from compactor.settings.spark_conf import is_submitted, master_is_given, spark_properties

# pyspark is slow to load, and most commands need no Spark.
# ruff: noqa: PLC0415


def opened(settings: Settings, *, converts_rows: bool) -> Any:
    """Start Spark with the configured properties: one that `converts_rows`, or one that only schedules tasks."""
    from compactor.adapters.spark.session import open_session

    return open_session(_properties(settings, converts_rows=converts_rows), uses_s3=_uses_s3(settings))


def joined(settings: Settings, session: Any) -> Any:
    """A session on the caller's Spark, with the properties that the engine needs.

    Raises:
        SettingsError: It is a Spark Connect session, which has no executors to send tasks to.
    """
    from compactor.adapters.spark.session import shared_session

    # The JVM is already running, so only session properties take effect.
    return shared_session(session, _properties(settings, converts_rows=True))


def running_session() -> Any | None:
    """This process's open session; None if there is none."""
    if "pyspark" not in sys.modules:
        return None
    from compactor.adapters.spark import session

    return session.running_session()


def _properties(settings: Settings, *, converts_rows: bool) -> dict[str, str]:
    return spark_properties(
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
        SettingsError: There is no Java, or an unsupported version.
    """
    need("spark")
    # spark-submit and Glue start the driver from a JVM.
    fault = None if is_submitted(os.environ) else java_fault(os.environ)
    if fault:
        raise SettingsError([fault])

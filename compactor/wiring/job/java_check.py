"""Checks that Spark can start, before anything waits for it."""

import os

from compactor.core.errors import SettingsError
from compactor.core.extras import need
from compactor.ops.doctor.java import java_fault
from compactor.settings.spark_conf import is_submitted


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

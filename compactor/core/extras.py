"""What is installed only by choice: the extras of the package, and what each of them is for."""

import sys
from importlib.util import find_spec
from typing import Literal

from compactor.core.errors import ExtraMissing
from compactor.core.text.safe_text import quoted

DISTRIBUTION = "ndjson-compactor"
"""The name of the package on an index. Its import is `compactor`."""

Extra = Literal["aws", "demo", "iceberg", "kafka", "msk", "report", "spark"]

EXTRAS: dict[Extra, tuple[str, str]] = {
    "aws": ("boto3", "S3 and the other services of AWS"),
    "demo": ("moto", "`compactor demo`"),
    "iceberg": ("pyiceberg", "a table of Iceberg"),
    "kafka": ("confluent_kafka", "input from Kafka"),
    "msk": ("aws_msk_iam_sasl_signer", "clusters of MSK with IAM"),
    "report": ("pygal", "the page of `compactor report`"),
    "spark": ("pyspark", "Spark, which also needs Java 17 or 21"),
}
"""A package that only this extra brings, and what needs it."""


def need(extra: Extra) -> None:
    """Check that an extra is installed. The packages that import what it brings do so first.

    Raises:
        ExtraMissing: It is not; the message has the command that installs it.
    """
    package, purpose = EXTRAS[extra]
    if not is_installed(extra):
        raise ExtraMissing(f"{purpose}: {package} is not installed -> {install_command(extra)}")


def is_installed(extra: Extra) -> bool:
    """Whether an extra is installed."""
    return find_spec(EXTRAS[extra][0]) is not None


def install_command(extra: Extra) -> str:
    """The command that adds an extra to this Python; it builds nothing, for the package itself is there."""
    return f"{quoted(sys.executable)} -m pip install '{DISTRIBUTION}[{extra}]'"

"""The optional extras of the package, and what each one is for."""

import sys
from importlib.util import find_spec
from typing import Literal

from compactor.core.errors import ExtraMissing
from compactor.core.text.safe_text import quoted

DISTRIBUTION = "ndjson-compactor"
"""The package's name on an index. It is imported as `compactor`."""

Extra = Literal["aws", "demo", "iceberg", "kafka", "msk", "report", "spark"]

EXTRAS: dict[Extra, tuple[str, str]] = {
    "aws": ("boto3", "S3 and other AWS services"),
    "demo": ("moto", "`compactor demo`"),
    "iceberg": ("pyiceberg", "Iceberg tables"),
    "kafka": ("confluent_kafka", "input from Kafka"),
    "msk": ("aws_msk_iam_sasl_signer", "MSK clusters with IAM"),
    "report": ("pygal", "the HTML page of `compactor report`"),
    "spark": ("pyspark", "Spark, which also needs Java 17 or 21"),
}
"""For each extra, a package that only it installs, and its purpose."""


def need(extra: Extra) -> None:
    """Check that an extra is installed. Packages that import an extra's libraries call this first.

    Raises:
        ExtraMissing: It is not; the message contains the install command.
    """
    package, purpose = EXTRAS[extra]
    if not is_installed(extra):
        raise ExtraMissing(f"{purpose}: {package} is not installed -> {install_command(extra)}")


def is_installed(extra: Extra) -> bool:
    """Whether an extra is installed."""
    return find_spec(EXTRAS[extra][0]) is not None


def install_command(extra: Extra) -> str:
    """The command that adds an extra to this Python; it builds nothing, as the package itself is already installed."""
    return f"{quoted(sys.executable)} -m pip install '{DISTRIBUTION}[{extra}]'"

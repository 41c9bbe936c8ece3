"""The environment that tests run in: the same on every machine, and with no way to a real account."""

import os
from collections.abc import MutableMapping

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""What lets a client of AWS in at a stand-in, and at no account."""

_PREFIXES = ("AWS_", "COMPACTOR_", "GLUE_")
_NAMES = frozenset(
    {
        *("FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TTY_COMPATIBLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_MASTER", "PYSPARK_SUBMIT_ARGS"),
        *("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_DRIVER_MEMORY"),
    }
)
_KEPT = frozenset({"COMPACTOR_CHROMIUM"})


def clear_environment(environment: MutableMapping[str, str] = os.environ) -> None:
    """Remove what would change what the product does or prints, and let clients of AWS in at stand-ins only.

    Args:
        environment: Changed in place.
    """
    for name in list(environment):
        if (name.startswith(_PREFIXES) or name.upper() in _NAMES) and name not in _KEPT:
            del environment[name]
    environment.update(CREDENTIALS)

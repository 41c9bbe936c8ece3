"""Counts the JVMs that Spark starts during a run of the tests, by the module whose test started them.

Spark's launcher reads `spark-env.sh` before it starts a JVM. This one writes down the test of the moment, which pytest
keeps in `PYTEST_CURRENT_TEST` and every process inherits. Executors of a cluster are started without it.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = 'echo "${PYTEST_CURRENT_TEST:-outside of tests}" >> "${BASH_SOURCE[0]%/*}/starts"\n'


def watch_jvm_starts(folder: Path) -> None:
    """Have every Spark that is started from now on, by this process or its children, write to a folder.

    Args:
        folder: Empty; every process that counts has its own.
    """
    (folder / "spark-env.sh").write_text(_SCRIPT)
    os.environ["SPARK_CONF_DIR"] = str(folder)


def jvm_starts(folder: Path) -> list[str]:
    """The module that started each JVM so far.

    Args:
        folder: The one that was watched.
    """
    log = folder / "starts"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition("::")[0] for line in lines]


def jvm_lines(starts: Sequence[str]) -> list[str]:
    """The number of starts, and that of each module, the most first."""
    return [f"{len(starts):4}  in all", *(f"{count:4}  {name}" for name, count in Counter(starts).most_common())]

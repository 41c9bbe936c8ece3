"""Which process runs which test."""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

SPARK = "tests/spark/"


class OneSparkSession(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Hands out tests one by one, but all that share the Spark session to one process.

    It takes the place of `--dist loadgroup`: pytest-xdist 3.8 sets an attribute that pytest 9.2 no longer reads, so
    that each process would start a session.
    """

    def _split_scope(self, nodeid: str) -> Any:
        return SPARK if nodeid.startswith(SPARK) else nodeid

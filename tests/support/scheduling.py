"""Which process runs which test."""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

SHARING = (
    "tests/spark/",
    "tests/deployment/",
    "tests/contract/test_logs.py",
    "tests/faults/test_table_",
    "tests/unit/control/test_month.py",
)
"""Tests that share what takes long to make: a Spark session, an account, a server, a catalog, a simulated month."""


class OneSparkSession(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Hands out tests one by one, but all that share what takes long to make to one process.

    It takes the place of `--dist loadgroup`: pytest-xdist 3.8 sets an attribute that pytest 9.2 no longer reads, so
    that each process would start a session.
    """

    def _split_scope(self, nodeid: str) -> Any:
        return next((each for each in SHARING if nodeid.startswith(each)), nodeid)

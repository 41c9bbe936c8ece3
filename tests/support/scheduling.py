"""Which process runs which test, and when."""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

SHARING = (
    "tests/spark/",
    "tests/deployment/",
    "tests/faults/test_table_",
    "tests/end_to_end/test_hostile_names.py",
    "tests/end_to_end/test_report_browser.py",
)
"""Tests that share what takes long to make: a Spark session, an account, a catalog, a folder of names, a browser."""

BY_MODULE = ("tests/unit/", "tests/contract/")
"""Tests that take moments each: those of a module share its fixtures, and are handed out at once."""

FIRST = (
    "tests/spark/",
    "tests/deployment/",
    "tests/native/",
    "tests/protocol/",
    "tests/faults/test_table_",
    "tests/faults/",
    "tests/end_to_end/",
    "tests/hostile/",
    "tests/simulation/",
    "tests/contract/",
    "tests/unit/support/",
    "tests/unit/sources/",
    "tests/unit/ops/",
)
"""What takes longest, so that all processes end at about the same time."""


def turn_of(nodeid: str) -> int:
    """The place of a test in the order in which tests begin."""
    return next((turn for turn, each in enumerate(FIRST) if nodeid.startswith(each)), len(FIRST))


class OneSparkSession(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Hands out tests in their order: all that share what takes long to make to one process, the long ones one by one.

    It takes the place of `--dist loadgroup`: pytest-xdist 3.8 sets an attribute that pytest 9.2 no longer reads, so
    that each process would start a session.
    """

    def _split_scope(self, nodeid: str) -> Any:
        if nodeid.startswith(BY_MODULE):
            return nodeid.partition("::")[0]
        return next((each for each in SHARING if nodeid.startswith(each)), nodeid)

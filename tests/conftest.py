"""What holds for all tests: those on Spark share one session, and every process of a test run adds to one tally."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.faults.tally import TALLY, Case, Kind
from tests.support.json_documents import check_printed_documents

SPARK = Path(__file__).parent / "spark"

# How long an example takes says something about the machine, and nothing about the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def _documents_match_their_schemas() -> Iterator[None]:
    """Whatever test calls a command with `--json`, the document is held against its schema."""
    with pytest.MonkeyPatch.context() as patch:
        check_printed_documents(patch)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one session in one process."""
    for item in items:
        if item.path.is_relative_to(SPARK):
            item.add_marker(pytest.mark.xdist_group("spark"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was counted in this process to the one that sums up."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["cases"] = [{**asdict(case), "kind": str(case.kind)} for case in TALLY.cases]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process has counted; one that crashed has nothing to hand over."""
    for case in getattr(node, "workeroutput", {}).get("cases", ()):
        TALLY.cases.append(Case(**{**case, "kind": Kind(case["kind"])}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was done to the job, and what became of its lines."""
    if TALLY.cases:
        terminalreporter.section("deaths, held-up drivers, and every line looked for")
        terminalreporter.write("\n".join([*TALLY.table(), ""]))

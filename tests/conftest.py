"""For all tests: a clean environment, one stand-in for AWS a process, and what is told at the end of a run."""

import gc
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from compactor.telemetry.logs import LOGGER
from tests.faults.s3_findings import FINDINGS
from tests.faults.tally import TALLY, Case, Kind
from tests.support.aws_stand_in import share_service_models, stand_in
from tests.support.environment import clear_environment
from tests.support.extras import KAFKA, REST_CATALOG, missing_lines, missing_required, required
from tests.support.json_documents import check_printed_documents
from tests.support.jvm_starts import jvm_lines, jvm_starts, watch_jvm_starts
from tests.support.kafka_broker import KafkaBroker
from tests.support.rest_catalog import RestCatalogServer
from tests.support.scheduling import OneSparkSession, turn_of
from tests.support.stored import refuse_updates_in_ci

STARTS: list[str] = []
"""The module that started each JVM, of all processes of this run."""

LARGE_SECONDS = 3600
"""The time limit of a large test that has none of its own."""

# How long an example takes says something about the machine, and nothing about the code.
_QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=40, **_QUIET)
settings.register_profile("exploring", max_examples=100, **_QUIET)  # for --hypothesis-profile: new ones each time
settings.load_profile("ci")

_jvm_folder = tempfile.TemporaryDirectory(prefix="compactor-jvm-starts-")


def pytest_configure() -> None:
    """Clear the environment before any test module is imported, for some read it then."""
    # A shell starts what it runs in the background with Ctrl-C ignored, and processes of tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    required()
    refuse_updates_in_ci()
    clear_environment()
    watch_jvm_starts(Path(_jvm_folder.name))
    share_service_models()


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Give each test the environment that the one before it found, and the log as a program that imports it has it."""
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.propagate, LOGGER.handlers[:] = True, [logging.NullHandler()]
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def rest_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalogServer]:
    """A REST catalog, one for all tests of a process. Names of tables in it have to be new ones."""
    REST_CATALOG.need()
    with RestCatalogServer(tmp_path_factory.mktemp("rest-catalog")) as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker of Kafka, one for all tests of a module."""
    KAFKA.need()
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as found:
        yield found


@pytest.fixture(scope="session")
def aws_endpoint() -> Iterator[str]:
    """The URL of a local stand-in for AWS, one for all tests of a process. Names in it have to be new ones."""
    with stand_in() as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def _documents_match_their_schemas() -> Iterator[None]:
    """Whatever test calls a command with `--json`, the document is held against its schema."""
    with pytest.MonkeyPatch.context() as patch:
        check_printed_documents(patch)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSparkSession:
    """Keep the tests of one Spark session in one process, and all tests in the order of their collection."""
    config.option.loadscopereorder = False
    return OneSparkSession(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, and give large ones, which take minutes by design, more time unless they ask."""
    items.sort(key=lambda item: turn_of(item.nodeid))
    for item in items:
        if item.get_closest_marker("large") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LARGE_SECONDS))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Any:
    """Collect no garbage while modules load, nor look at them later: they stay, and it took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    """Fail a test that was skipped for want of something that `REQUIRE` names."""
    return _as_required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    """Fail a module that was skipped for want of something that `REQUIRE` names."""
    return _as_required((yield))


def _as_required(report: Any) -> Any:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[-1].removeprefix("Skipped: ")
        if missing_required(reason):
            report.outcome = "failed"
            report.longrepr = f"required, but {reason}"
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was counted in this process to the one that sums up."""
    starts = jvm_starts(Path(_jvm_folder.name))
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is None:
        STARTS.extend(starts)
    else:
        output["jvm_starts"] = starts
        output["cases"] = [{**asdict(case), "kind": str(case.kind)} for case in TALLY.cases]
        output["findings"] = FINDINGS.counted()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process has counted; one that crashed has nothing to hand over."""
    counted = getattr(node, "workeroutput", {})
    STARTS.extend(counted.get("jvm_starts", ()))
    for case in counted.get("cases", ()):
        TALLY.cases.append(Case(**{**case, "kind": Kind(case["kind"])}))
    FINDINGS.merge(counted.get("findings", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was done to the job and what became of its lines, where JVMs were started, and what was missing."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for title, lines in (
        ("deaths, held-up drivers, and every line looked for", TALLY.table() if TALLY.cases else []),
        ("faults on S3, by the level they were looked at on", FINDINGS.table() if FINDINGS.counts else []),
        ("JVMs that Spark started", jvm_lines(STARTS) if STARTS else []),
        ("missing on this machine", missing_lines(reasons)),
    ):
        if lines:
            terminalreporter.section(title)
            terminalreporter.write("\n".join([*lines, ""]))

"""Programs that a machine may lack, whose tests are then skipped, and `REQUIRE`, which makes those tests fail."""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor.adapters.local.native.module import is_installed
from tests.protocol.tlc import found_jar
from tests.support.browser import found_browser
from tests.support.kafka_broker import is_there as is_kafka_there
from tests.support.kinesis_server import is_there as is_kinesis_there
from tests.support.rest_catalog import FOR_SPARK, is_fetched

ROOT = Path(__file__).resolve().parents[2]
REQUIRE = "REQUIRE"
"""Names of extras, such as `native,versitygw,chromium`: a test that lacks one of them fails."""


@dataclass(frozen=True)
class Extra:
    """Something that not every machine has.

    Attributes:
        name: As `REQUIRE` names it.
        found: Whether this machine has it.
        remedy: How to get it.
    """

    name: str
    found: Callable[[], bool]
    remedy: str

    @property
    def reason(self) -> str:
        """Why a test is skipped; the summary at the end of a run counts skips by this text."""
        return f"{self.name} is missing: {self.remedy}"

    @property
    def needed(self) -> pytest.MarkDecorator:
        """Skips a test where this is missing."""
        return pytest.mark.skipif(not self.found(), reason=self.reason)

    def need(self) -> None:
        """Skip the current test, or the module that is being imported, where this is missing."""
        if not self.found():
            pytest.skip(self.reason, allow_module_level=True)

    def need_if_required(self) -> None:
        """Fail the current test where this is missing and `REQUIRE` names it; for tests that have a substitute."""
        if not self.found() and self.name in required():
            pytest.fail(f"required, but {self.reason}")


def versitygw_path() -> Path | None:
    """The program: that of the variable VERSITYGW, of the project's own folder, or of the path."""
    named = os.environ.get("VERSITYGW")
    own = ROOT / ".tools" / "versitygw"
    found = named or (own if own.exists() else shutil.which("versitygw"))
    return Path(found) if found else None


def readers_python() -> Path | None:
    """The Python that has pandas, and a DuckDB with the extension for Iceberg."""
    own = ROOT / ".tools" / "readers" / "bin" / "python"
    return own if own.exists() else None


NATIVE = Extra("native", is_installed, "`make dev` builds the native engine of this tree, with cargo")
CARGO = Extra("cargo", lambda: shutil.which("cargo") is not None, "install Rust 1.88 or later")
VERSITYGW = Extra("versitygw", lambda: versitygw_path() is not None, "`make versitygw` builds it, with Go")
CHROMIUM = Extra("chromium", lambda: found_browser() is not None, "`make browser` installs it where apt-get may")
TLC = Extra("tlc", lambda: found_jar() is not None, "`make spec` downloads it, with Java")
REST_CATALOG = Extra("rest-catalog", is_fetched, "`make dev` downloads it, with Java")
ON_SPARK = Extra("iceberg-spark", lambda: is_fetched(FOR_SPARK), "`make dev` downloads it, with Java")
KAFKA = Extra("kafka", is_kafka_there, "`make dev` downloads it, with Java")
KINESIS = Extra("kinesis", is_kinesis_there, "`make dev` downloads it, with Node and npm")
READERS = Extra(
    "readers", lambda: readers_python() is not None, "`make test-full` installs pandas, and a DuckDB for tables"
)
EXTRAS = {
    each.name: each
    for each in (NATIVE, CARGO, VERSITYGW, CHROMIUM, TLC, REST_CATALOG, ON_SPARK, KAFKA, KINESIS, READERS)
}


def required() -> frozenset[str]:
    """The extras that `REQUIRE` names.

    Raises:
        pytest.UsageError: It names something else.
    """
    names = frozenset(name.strip() for name in os.environ.get(REQUIRE, "").split(",") if name.strip())
    if unknown := names - EXTRAS.keys():
        raise pytest.UsageError(f"{REQUIRE}={','.join(sorted(unknown))}: expected some of {', '.join(EXTRAS)}")
    return names


def missing_required(reason: str) -> bool:
    """Whether a test was skipped for want of a required extra.

    Args:
        reason: The text of the skip.
    """
    return any(EXTRAS[name].reason in reason for name in required())


def missing_lines(reasons: Iterable[str]) -> list[str]:
    """One line for each extra that this machine lacks, with the number of tests or modules skipped for want of it.

    Args:
        reasons: The text of every skip.
    """
    told = list(reasons)
    return [
        f"{each.reason} ({sum(each.reason in reason for reason in told)} skipped)"
        for each in EXTRAS.values()
        if not each.found()
    ]

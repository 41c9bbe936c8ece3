"""The engines that a manifest's life is tried on; without Spark: the native one in threads, or a plain one."""

from dataclasses import replace
from typing import Any

import pytest

from compactor.adapters.local.native.module import is_installed
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.engines.engine import Engine
from compactor.wiring import engines
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine

PLAIN, NATIVE = "plain", "native"
WITHOUT_SPARK = (NATIVE, PLAIN)
DEFAULT = NATIVE if is_installed() else PLAIN


def engines_without_spark() -> list[Any]:
    """One for `make test`, the native one unless it is not installed; the full matrices take the other one, too."""
    return [NATIVE, pytest.param(PLAIN, marks=pytest.mark.faults)] if is_installed() else [PLAIN]


def engine_in_turns(number: int) -> str:
    """An engine without Spark; the next number has the other one, if the native one is installed."""
    return WITHOUT_SPARK[number % len(WITHOUT_SPARK)] if is_installed() else PLAIN


def engines_on_spark(default: str) -> list[Any]:
    """Both for the full matrices, one for `make test`.

    Args:
        default: That one, if it is installed.
    """
    if not is_installed():
        return ["spark"]
    return [pytest.param(each, marks=() if each == default else pytest.mark.faults) for each in ("spark", "native")]


def engine_without_spark(name: str, app: App, *, rows_per_file: int, target_file_bytes: int) -> Engine:
    """An engine whose output files are small enough for a few lines to make several.

    Args:
        name: One of `WITHOUT_SPARK`.
        app: The parts that it works with.
        rows_per_file: Rows in each file of the plain engine.
        target_file_bytes: Of the native engine's, which settings do not let be so small.
    """
    if name == PLAIN:
        return PlainEngine(app.store, metadata_columns=app.settings.metadata_columns, rows_per_file=rows_per_file)
    output = app.settings.output.model_copy(update={"target_file_bytes": target_file_bytes})
    small = App(replace(app.settings, output=output), clock=app.clock, store=app.store)
    return engines.native_engine(small, ThreadBinWorkers(app.store))

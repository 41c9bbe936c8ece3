"""Determines the configured engine and source of manifests, with the reason."""

import os
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from compactor.adapters.local.native.module import is_installed, why_not_installed
from compactor.core import extras
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.engines.engine import EngineName
from compactor.ops.doctor.java import java_program
from compactor.settings.sections import Convert
from compactor.settings.settings import Settings
from compactor.settings.spark_conf import is_submitted

N = TypeVar("N", bound=str)


@dataclass(frozen=True, slots=True)
class Choice(Generic[N]):
    """A choice made by the settings, with its name in them, and the reason."""

    name: N
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def engine_choice(convert: Convert) -> Choice[EngineName]:
    """The configured engine, installed or not. `auto` is native if this process can load it."""
    if convert.engine != "auto":
        return Choice(convert.engine, f'convert.engine is "{convert.engine}"')
    if is_installed():
        return Choice("native", "it is installed")
    return Choice("spark", f"{why_not_installed()}; about 50 times slower for a small folder")


def installed_engine(settings: Settings) -> EngineName:
    """The configured engine, by its name in the ledger.

    Raises:
        SettingsError: It is the native engine, which is not installed.
    """
    name = engine_choice(settings.convert).name
    if name == "native" and not is_installed():
        raise SettingsError(
            [f'convert.engine: "native": {why_not_installed()} -> install one with it, or use "spark" or "auto"']
        )
    return name


def source_choice(settings: Settings) -> "Choice[Literal['spark', 'listing']]":
    """A job's source of manifests: Spark's file stream, or listings by this process.

    `auto` is Spark's if Spark is installed, or converts.
    """
    source = settings.stream.source
    if source != "auto":
        return Choice(source, f'stream.source is "{source}"')
    if engine_choice(settings.convert).name == "spark":
        return Choice("spark", "the engine is spark")
    if not extras.is_installed("spark"):
        return Choice("listing", "pyspark is not installed")
    if not is_submitted(os.environ) and java_program(os.environ) is None:
        return Choice("listing", "there is no Java")
    return Choice("spark", "pyspark and Java are installed")


def needs_spark(settings: Settings) -> bool:
    """Whether the job, or that of any stream, needs Spark: for its stream, or for its engine.

    Raises:
        SettingsError: The settings require a job without Spark, but its engine needs Spark.
    """
    return any(map(_needs_spark, settings.sharing if settings.streams else (settings,)))


def _needs_spark(settings: Settings) -> bool:
    if source_choice(settings).name == "spark":
        return True
    if installed_engine(settings) != "native":
        choice = engine_choice(settings.convert)
        why = f"the engine is {choice.name} ({choice.reason})"
        raise SettingsError([f'stream.source: "listing" -> expected "spark", because {why}'])
    return False


def converts_on_spark(settings: Settings) -> bool:
    """Whether Spark converts the rows, or those of any stream; otherwise it only schedules tasks."""
    parts = settings.sharing if settings.streams else (settings,)
    return any(engine_choice(each.convert).name == "spark" for each in parts)


def is_in_place(settings: Settings) -> bool:
    """Whether row files are written under their final names, where a table lists them.

    On a local disk a copy is a link, and costs nothing. Spark's engine writes through the committers of S3A.
    """
    if not settings.has_table:  # guard: nothing is written in place where readers list folders
        return False
    if settings.in_place is not None:
        return settings.in_place
    return is_s3(settings.paths.output) and engine_choice(settings.convert).name == "native"

"""Says which engine and which source of manifests the settings choose, and why."""

import os
from dataclasses import dataclass
from typing import Literal

from compactor.adapters.local.native.kernel import is_installed, why_not_installed
from compactor.core import extras
from compactor.engines.engine import EngineName
from compactor.ops.doctor.java import java_program
from compactor.settings.sections import Convert
from compactor.settings.settings import Settings
from compactor.settings.spark_conf import is_submitted


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine.

    Attributes:
        name: Its name in settings and ledger.
        reason: Why it was chosen, in words.
    """

    name: EngineName
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def engine_of(convert: Convert) -> EngineName:
    """The engine that the settings choose, installed or not. `auto` is native if this process can load it."""
    return engine_choice(convert).name


def engine_choice(convert: Convert) -> EngineChoice:
    """The engine that the settings choose, installed or not, and why."""
    if convert.engine != "auto":
        return EngineChoice(convert.engine, f'convert.engine is "{convert.engine}"')
    if is_installed():
        return EngineChoice("native", "it is installed")
    return EngineChoice("spark", f"{why_not_installed()}; about 50 times slower for a small folder")


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """Where a job takes its manifests from.

    Attributes:
        name: Spark's stream of files, or listings by this process.
        reason: Why it was chosen, in words.
    """

    name: Literal["spark", "listing"]
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def source_choice(settings: Settings) -> SourceChoice:
    """The source that the settings choose, and why. `auto` is Spark's where Spark is installed, or converts."""
    source = settings.stream.source
    if source != "auto":
        return SourceChoice(source, f'stream.source is "{source}"')
    if engine_of(settings.convert) == "spark":
        return SourceChoice("spark", "the engine is spark")
    if not extras.is_installed("spark"):
        return SourceChoice("listing", "pyspark is not installed")
    if not is_submitted(os.environ) and java_program(os.environ) is None:
        return SourceChoice("listing", "there is no Java")
    return SourceChoice("spark", "pyspark and Java are installed")

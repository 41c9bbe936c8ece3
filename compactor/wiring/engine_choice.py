"""Says which engine the settings choose, and why."""

from dataclasses import dataclass

from compactor.adapters.local.native.kernel import is_installed, why_not_installed
from compactor.engines.engine import EngineName
from compactor.settings.sections import Convert


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
        return EngineChoice("native", "its wheel is installed")
    why = why_not_installed().replace("its wheel", "the native wheel")
    return EngineChoice("spark", f"{why}, about 50 times slower for a small folder")

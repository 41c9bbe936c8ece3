"""What a look at the surroundings finds: one line each, with the next move where there is one to make."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "fault", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at, such as `java` or `bucket raw`.
        state: `warning` works, but somebody should know; `fault` does not work; `skipped` was not looked at.
        found: What was found, in one line.
        next_move: What to do about it; nothing where all is well.
    """

    name: str
    state: State
    found: str
    next_move: str = ""


def ok(name: str, found: str) -> Finding:
    """It is as it has to be."""
    return Finding(name, "ok", found)


def warning(name: str, found: str, next_move: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(name, "warning", found, next_move)


def fault(name: str, found: str, next_move: str) -> Finding:
    """It does not work."""
    return Finding(name, "fault", found, next_move)


def skipped(name: str, found: str, next_move: str = "") -> Finding:
    """It was not looked at."""
    return Finding(name, "skipped", found, next_move)


def settings_findings(faults: Iterable[str], place: str) -> list[Finding]:
    """The faults of settings, as `SettingsError` words them: what is set comes first, then what was expected.

    Args:
        faults: One line each.
        place: Where the settings are; nothing if they are variables alone.
    """
    return [_settings_finding(each, place) for each in faults]


def _settings_finding(text: str, place: str) -> Finding:
    found, _, expected = text.partition(" -> expected ")
    choices, _, meant = expected.rpartition("; did you mean ")
    move = f"did you mean {meant} It is one of {choices.removeprefix('one of ')}" if meant and choices else ""
    where = f"{place}: " if place and place not in found else ""
    return fault(
        "settings", where + found, move or (f"expected {expected}" if expected else "put it right and look again")
    )

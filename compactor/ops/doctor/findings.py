"""What a check finds: one line each, with the next action where one is needed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "fault", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str  # the check, such as `java` or `bucket raw`; the runner of the checks fills it in
    state: State  # `fault` does not work; `warning` works for now; `skipped` was not checked
    found: str  # what was found, in one line
    next_move: str = ""  # what to do about it; empty where all is well
    stream: str = ""  # the stream that it is about; empty if it is about all, or if there are no streams

    @property
    def subject(self) -> str:
        """The check, with its stream."""
        return f"{self.stream}: {self.name}" if self.stream else self.name


def ok(found: str) -> Finding:
    """What is as it should be."""
    return Finding("", "ok", found)


def warning(found: str, next_move: str) -> Finding:
    """What works, but needs attention."""
    return Finding("", "warning", found, next_move)


def fault(found: str, next_move: str) -> Finding:
    """What does not work."""
    return Finding("", "fault", found, next_move)


def skipped(found: str, next_move: str = "") -> Finding:
    """What was not checked."""
    return Finding("", "skipped", found, next_move)


def settings_findings(faults: Iterable[str], place: str) -> list[Finding]:
    """The faults of a `SettingsError`, each `what is set -> expected what`; `place` is empty without a file."""
    findings: list[Finding] = []
    for text in faults:
        found, _, expected = text.partition(" -> expected ")
        choices, _, meant = expected.rpartition("; did you mean ")
        move = f"expected {expected}" if expected else "correct it and run doctor again"
        if meant and choices:
            move = f"did you mean {meant} It is one of {choices.removeprefix('one of ')}"
        where = f"{place}: " if place and place not in found else ""
        findings.append(Finding("settings", "fault", where + found, move))
    return findings

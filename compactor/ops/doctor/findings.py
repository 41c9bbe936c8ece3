"""Runs checks in order, and yields their results: one line each, with the next action if one is needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Literal, Protocol

from compactor.core.errors import CompactorError, SettingsError, TryAgainError
from compactor.core.results import as_document


class Absent(Enum):
    """Why AWS does not describe something."""

    MISSING = "missing"
    DENIED = "denied"


class Account(Protocol):
    """An AWS account, or a stand-in. No method changes anything.

    Every method raises `StoreUnavailable` if there is no response, and `AccessError` for what an operator must change.
    """

    @property
    def endpoint(self) -> str:
        """The URL of S3."""

    def server_time(self, bucket: str) -> datetime:
        """S3's time in UTC, to the second; requested without credentials. The bucket need not exist."""

    def region(self) -> str | None:
        """The AWS region; None if none is set anywhere."""

    def credentials(self) -> str | None:
        """Where the credentials come from; None if there are none."""

    def refusal(self, bucket: str) -> str:
        """The error code with which S3 refuses the credentials themselves; empty if it accepts them."""

    def describe(self, service: str, call: str, **arguments: Any) -> dict[str, Any] | Absent:
        """The response to a service's read-only call, such as `glue`, `get_job`, `JobName="a"`."""


State = Literal["ok", "warning", "fault", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str  # the check, such as `java` or `bucket raw`; filled in by the runner of the checks
    state: State  # `fault` does not work; `warning` works for now; `skipped` was not checked
    found: str  # what was found, in one line
    next_move: str = ""  # what to do about it; empty if healthy
    stream: str = ""  # the affected stream; empty if it affects all, or if there are no streams

    @property
    def subject(self) -> str:
        """The check, with its stream."""
        return f"{self.stream}: {self.name}" if self.stream else self.name


@as_document(shows=("faults", "warnings"))
@dataclass(frozen=True, slots=True)
class Checkup:
    """The results of all checks."""

    findings: list[Finding]  # results, in the order of the checks

    @property
    def faults(self) -> int:
        """Number of faults; above 0 the exit code is 2."""
        return sum(each.state == "fault" for each in self.findings)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return sum(each.state == "warning" for each in self.findings)


def ok(found: str) -> Finding:
    """A healthy result."""
    return Finding("", "ok", found)


def warning(found: str, next_move: str) -> Finding:
    """Works, but needs attention."""
    return Finding("", "warning", found, next_move)


def fault(found: str, next_move: str) -> Finding:
    """Does not work."""
    return Finding("", "fault", found, next_move)


def skipped(found: str, next_move: str = "") -> Finding:
    """Was not checked."""
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


class CheckEnded(Exception):
    """Ends a check early, with its finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.found)
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str  # names its findings; other checks name it in `needs`
    # Returns one finding or several. A `CompactorError` that it raises is a fault
    run: Callable[[], Finding | Sequence[Finding]]
    needs: tuple[str, ...] = ()  # names of earlier checks; this one is skipped where one of them found a fault
    stream: str = ""  # the affected stream; no other check needs such a check


def run_checks(checks: Iterable[Check], has_time: Callable[[], bool]) -> Iterator[Finding]:
    """Run all checks in order; `has_time` returns whether another one may start.

    A check that fails, even by a bug, stops only the checks that need it.
    """
    root_causes: dict[str, str] = {}  # check at fault or skipped → the check at fault that it waits for
    for check in checks:
        root = next((root_causes[name] for name in check.needs if name in root_causes), None)
        if root is not None:
            root_causes |= {} if check.stream else {check.name: root}
            found: Sequence[Finding] = [skipped(f"fix {root} first")]
        elif not has_time():
            found = [skipped("no time left: other checks took too long", "run doctor again when they respond")]
        else:
            found = _findings_of(check)
            if not check.stream and any(each.state == "fault" for each in found):
                root_causes[check.name] = check.name
        yield from (replace(each, name=check.name, stream=check.stream) for each in found)


def _findings_of(check: Check) -> Sequence[Finding]:
    try:
        found = check.run()
    except CheckEnded as exc:
        return [exc.finding]
    except Exception as exc:  # noqa: BLE001 - a check that fails must not hide what the others find
        return [_failure(exc)]
    return [found] if isinstance(found, Finding) else found


def _failure(exc: Exception) -> Finding:
    if isinstance(exc, SettingsError):
        return fault("; ".join(exc.faults), "correct the settings and run doctor again")
    text = " ".join(str(exc).split())
    if isinstance(exc, TryAgainError):
        return fault(text, "run doctor again; if this stays, check that service and the network path to it")
    if isinstance(exc, CompactorError):
        return fault(text, "allow it, or set a different one in the settings")
    return fault(f"unexpected {type(exc).__name__}: {text}", "check it by hand, and report this as a bug")

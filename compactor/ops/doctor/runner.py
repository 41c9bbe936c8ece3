"""Runs the checks in order. A check that fails, even by a bug, stops only the checks that need it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compactor.core.errors import CompactorError, SettingsError, TryAgainError
from compactor.ops.doctor.findings import Finding, fault, skipped


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str  # names its findings; other checks name it in `needs`
    # Returns one finding or several. A `CompactorError` that it raises is a fault
    run: Callable[[], Finding | Sequence[Finding]]
    needs: tuple[str, ...] = ()  # names of earlier checks; this one is skipped where one of them found a fault
    stream: str = ""  # the stream that it is about; no other check needs such a one


def run_checks(checks: Iterable[Check], has_time: Callable[[], bool]) -> Iterator[Finding]:
    """Run all checks in order; `has_time` tells whether another one may begin."""
    root_causes: dict[str, str] = {}  # check at fault or skipped → the check at fault that it waits for
    for check in checks:
        root = next((root_causes[name] for name in check.needs if name in root_causes), None)
        if root is not None:
            root_causes |= {} if check.stream else {check.name: root}
            found: Sequence[Finding] = [skipped(f"fix {root} first")]
        elif not has_time():
            found = [skipped("no time left: other checks took too long", "run doctor again when they answer")]
        else:
            found = _findings_of(check)
            if not check.stream and any(each.state == "fault" for each in found):
                root_causes[check.name] = check.name
        yield from (replace(each, name=check.name, stream=check.stream) for each in found)


def _findings_of(check: Check) -> Sequence[Finding]:
    try:
        found = check.run()
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
        return fault(text, "allow it, or name another one in the settings")
    return fault(f"unexpected {type(exc).__name__}: {text}", "check it by hand, and report this as a bug")

"""Looks at one thing after another: a failure stops nothing but what needs it, and neither does a bug."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compactor.core.errors import CompactorError, SettingsError, TryAgainError
from compactor.ops.doctor.findings import Finding, fault, skipped


@dataclass(frozen=True, slots=True)
class Check:
    """A look at one thing.

    Attributes:
        name: What is looked at; what others need is named by it.
        look: Looks, and finds one thing or several. A `CompactorError` that it raises is a fault.
        needs: Names of checks before it; where one of them is at fault there is nothing to see here.
    """

    name: str
    look: Callable[[], Finding | Sequence[Finding]]
    needs: tuple[str, ...] = ()


def examine(checks: Iterable[Check], has_time: Callable[[], bool]) -> Iterator[Finding]:
    """Look at everything, in order.

    Args:
        checks: What to look at.
        has_time: Whether another look may begin.
    """
    at_fault: dict[str, str] = {}  # check → the one at fault that it waits for
    for check in checks:
        root = next((at_fault[name] for name in check.needs if name in at_fault), None)
        if root is not None:
            at_fault[check.name] = root
            yield skipped(check.name, f"first mend {root}")
        elif not has_time():
            yield skipped(check.name, "the others took too long", "look again when they answer")
        else:
            found = _looked(check)
            if any(each.state == "fault" for each in found):
                at_fault[check.name] = check.name
            yield from found


def _looked(check: Check) -> Sequence[Finding]:
    try:
        found = check.look()
    except Exception as exc:  # noqa: BLE001 - one look that goes wrong must not hide what the others see
        return [_failure(check.name, exc)]
    return [found] if isinstance(found, Finding) else found


def _failure(name: str, exc: Exception) -> Finding:
    if isinstance(exc, SettingsError):
        return fault(name, "; ".join(exc.faults), "put the settings right and look again")
    if isinstance(exc, TryAgainError):
        return fault(name, _line(exc), "look again; if it stays so, look at that service and the way to it")
    if isinstance(exc, CompactorError):
        return fault(name, _line(exc), "allow it, or name another one in the settings")
    return fault(name, f"unexpected {type(exc).__name__}: {_line(exc)}", "look at it by hand, and report this")


def _line(exc: Exception) -> str:
    return " ".join(str(exc).split())

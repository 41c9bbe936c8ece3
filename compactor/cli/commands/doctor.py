"""`compactor doctor`: looks at everything the compactor needs, and says what to do about what is wrong."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import click

from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_json, shallow
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.formatting import count
from compactor.ops.doctor.findings import Finding, fault, ok, settings_findings, skipped
from compactor.settings.settings import Settings
from compactor.wiring.doctor import ANSWER_SECONDS, ATTEMPTS, look_around

_COLOURS = {"ok": "green", "warning": "yellow", "fault": "red", "skipped": "bright_black"}
_STATE_CHARACTERS = 9
_NAME_CHARACTERS = 13


@click.command("doctor")
@click.option("--elsewhere", is_flag=True, help="The job runs elsewhere, as on Glue: leave this machine out.")
@json_option
@body
def doctor(invocation: Invocation, *, elsewhere: bool, as_json: bool) -> ExitCode:
    """Check settings, machine, AWS and every place.

    It really tries each place, with objects that nobody takes for data and that are deleted again. Without settings it
    looks at the machine alone.

    Exit codes: 2 if anything is at fault; a warning is no fault.
    """
    findings = _findings(invocation, is_job_here=not elsewhere)
    if as_json:
        found = list(findings)
        print_json(_document(found))
    else:
        found = [finding for alike in _alike(findings) for finding in _shown(alike)]
        click.echo(_summary(found))
    return ExitCode.WRONG_USAGE if _number(found, "fault") else ExitCode.DONE


def _alike(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings as they come; those that were skipped for the same reason together."""
    for state, group in groupby(findings, key=lambda each: (each.state, each.found)):
        if state[0] == "skipped":
            yield list(group)
        else:
            yield from ([each] for each in group)


def _findings(invocation: Invocation, *, is_job_here: bool) -> Iterator[Finding]:
    settings, about_settings = _settings(invocation)
    yield from about_settings
    yield from look_around(settings, invocation.place, is_job_here=is_job_here)
    if settings is None:
        yield skipped("places", "first the settings")


def _settings(invocation: Invocation) -> tuple[Settings | None, list[Finding]]:
    if not invocation.has_settings:
        move = "write some with compactor init, or name them with --config FILE"
        return None, [skipped("settings", "none are named, so only the machine is looked at", move)]
    try:
        settings = invocation.settings(timeout_seconds=ANSWER_SECONDS, attempts=ATTEMPTS)
    except SettingsError as exc:
        return None, settings_findings(exc.faults, invocation.place)
    except CompactorError as exc:
        return None, [fault("settings", " ".join(str(exc).split()), "name settings that can be read")]
    return settings, [ok("settings", invocation.place or "from COMPACTOR_ variables")]


def _document(found: list[Finding]) -> dict[str, Any]:
    return {
        "faults": _number(found, "fault"),
        "warnings": _number(found, "warning"),
        "findings": [shallow(each) for each in found],
    }


def _number(found: list[Finding], state: str) -> int:
    return sum(each.state == state for each in found)


def _shown(alike: list[Finding]) -> list[Finding]:
    """Print findings that are alike as one."""
    first = alike[0]
    word = "FAULT" if first.state == "fault" else first.state
    state = click.style(f"{word:{_STATE_CHARACTERS}}", fg=_COLOURS[first.state], bold=first.state == "fault")
    name = first.name if len(alike) == 1 else f"{len(alike)} looks"
    others = "" if len(alike) == 1 else f": {', '.join(each.name for each in alike)}"
    click.echo(f"{state}{name:{_NAME_CHARACTERS}} {first.found}{others}")
    if first.next_move:
        click.echo(f"{'':{_STATE_CHARACTERS + _NAME_CHARACTERS - 2}}-> {first.next_move}")
    return alike


def _summary(found: list[Finding]) -> str:
    faults, warnings = _number(found, "fault"), _number(found, "warning")
    said = f" ({count(warnings, 'warning')})" if warnings else ""
    if faults:
        return f"{count(faults, 'fault')}{said}: do what the arrows say, then look again."
    return f"No fault{said}."

"""`compactor doctor`: checks everything that the compactor needs, and suggests a fix for each fault."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import print_json
from compactor.cli.ui.terminal import echo
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.text.formatting import count
from compactor.ops.doctor.findings import Checkup, Finding, settings_findings
from compactor.settings.settings import Settings
from compactor.wiring.doctor import ANSWER_SECONDS, ATTEMPTS, examine

_COLOURS = {"ok": "green", "warning": "yellow", "fault": "red", "skipped": "bright_black"}
_STATE_CHARACTERS = 9
_NAME_CHARACTERS = 13


@click.command("doctor")
@destination_argument
@click.option("--elsewhere", is_flag=True, help="Do not check this machine: the job runs elsewhere, such as on Glue.")
@reporting(Checkup)
def doctor(invocation: Invocation, *, elsewhere: bool, as_json: bool) -> ExitCode:
    """Check the settings, this machine, AWS and all storage.

    Tests each storage place with small objects, which no command treats as data and which it deletes at the end.
    Without --stream, checks the places and tables of all streams. Without settings, checks what `compact` needs on this
    machine.

    Exit codes: 2 if there is a fault. Warnings are not faults.
    """
    findings = _findings(invocation, is_job_here=not elsewhere)
    if as_json:
        checkup = Checkup(list(findings))
        print_json(checkup)
    else:
        checkup = Checkup([])
        for group in _grouped(findings):
            _show(group)
            checkup.findings.extend(group)
        echo(_summary(checkup))
    return ExitCode.WRONG_USAGE if checkup.faults else ExitCode.DONE


def _grouped(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Yields each finding alone, except that findings skipped for the same reason come together."""
    for (state, _), group in groupby(findings, key=lambda each: (each.state, each.found)):
        if state == "skipped":
            yield list(group)
        else:
            yield from ([each] for each in group)


def _findings(invocation: Invocation, *, is_job_here: bool) -> Iterator[Finding]:
    settings, about_settings = _settings(invocation)
    yield from about_settings
    is_folder = invocation.destination is not None
    yield from examine(settings, invocation.place, is_job_here=is_job_here, is_folder=is_folder)
    if settings is None and invocation.has_settings:
        yield Finding("places", "skipped", "fix the settings first")


def _settings(invocation: Invocation) -> tuple[Settings | None, list[Finding]]:
    if not invocation.has_settings:
        move = "to check more, give DST or --config FILE, or run compactor init"
        return None, [Finding("settings", "skipped", "none, so the check covers only `compact`", move)]
    try:
        settings = invocation.deployment(timeout_seconds=ANSWER_SECONDS, attempts=ATTEMPTS)
    except SettingsError as exc:
        return None, settings_findings(exc.faults, invocation.place)
    except CompactorError as exc:
        return None, [Finding("settings", "fault", " ".join(str(exc).split()), "give readable settings")]
    return settings, [Finding("settings", "ok", invocation.place or "from COMPACTOR_ variables")]


def _show(group: list[Finding]) -> None:
    first = group[0]
    word = "FAULT" if first.state == "fault" else first.state
    state = click.style(f"{word:{_STATE_CHARACTERS}}", fg=_COLOURS[first.state], bold=first.state == "fault")
    name = first.subject if len(group) == 1 else f"{len(group)} checks"
    others = "" if len(group) == 1 else f": {', '.join(each.subject for each in group)}"
    echo(f"{name:{_NAME_CHARACTERS}} {first.found}{others}", mark=state)
    if first.next_move:
        echo(f"{'':{_STATE_CHARACTERS + _NAME_CHARACTERS - 2}}-> {first.next_move}")


def _summary(checkup: Checkup) -> str:
    said = f" ({count(checkup.warnings, 'warning')})" if checkup.warnings else ""
    if checkup.faults:
        return f"{count(checkup.faults, 'fault')}{said}: follow the arrows, then run doctor again."
    return f"No faults{said}."

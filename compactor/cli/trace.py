"""`compactor trace`: where is my file?"""

from typing import Any

import click

from compactor.app import App
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.output import by_name, print_fields, print_json, shallow
from compactor.errors import SettingsError
from compactor.layout import canonical
from compactor.places import parse_place
from compactor.ports import ClaimTable
from compactor.tracing import Trace, Tracer, Whereabouts

MEANINGS = {
    Whereabouts.UNKNOWN: "no manifest of its day names it, and none that waits",
    Whereabouts.CLAIMED: "claimed for a manifest that is not written yet",
    Whereabouts.WAITING: "in a manifest that nobody began yet",
    Whereabouts.IN_WORK: "in a manifest that was begun",
    Whereabouts.DECIDED: "committed, and not all of it is in its final place yet",
    Whereabouts.DONE: "done: every line is in the output, in the rejects, or blank",
    Whereabouts.SET_ASIDE: "set aside whole; the rest of its manifest is done",
    Whereabouts.DEAD_LETTERED: "its manifest is a dead letter",
}
_CODES = {
    Whereabouts.UNKNOWN: ExitCode.FAILED,
    Whereabouts.SET_ASIDE: ExitCode.NEEDS_OPERATOR,
    Whereabouts.DEAD_LETTERED: ExitCode.NEEDS_OPERATOR,
}


@click.command("trace")
@click.argument("uri")
@json_option
@body
def trace(invocation: Invocation, *, uri: str, as_json: bool) -> ExitCode:
    """Tell where an input file is: manifest, state, output, rejects.

    Exit codes: 0 found; 1 no manifest found; 3 it was set aside, alone or with its manifest.
    """
    app = App(invocation.settings())
    tracer = Tracer(
        app.store,
        app.layout,
        app.ledger,
        _claims(app),
        app.clock,
        allowed_prefixes=app.settings.input.allowed_prefixes,
    )
    found = tracer.trace(_absolute(uri))
    if as_json:
        print_json(_document(found))
    else:
        _show(found)
    return _CODES.get(found.whereabouts, ExitCode.DONE)


def _absolute(uri: str) -> str:
    """The URI, literally; only a path that is none of these is one below the current working directory."""
    if canonical(uri).startswith(("s3://", "/")):
        return uri
    try:
        return parse_place(uri)
    except ValueError as exc:
        raise click.BadParameter(f"{uri!r} -> expected s3://bucket/key, file:///path or a path ({exc})") from exc


def _claims(app: App) -> ClaimTable | None:
    """The claims; None where nothing was ever planned, for asking must not make a table."""
    try:
        return app.claims
    except SettingsError:
        return None


def _document(found: Trace) -> dict[str, Any]:
    return {**shallow(found), "meaning": MEANINGS[found.whereabouts]}


def _show(found: Trace) -> None:
    fields = [
        ("file", found.uri + ("" if found.exists else " (there is no such object now)")),
        ("whereabouts", MEANINGS[found.whereabouts]),
    ]
    if found.message:
        fields.append(("why", found.message))
    if found.manifest_id:
        fields.append(("manifest", found.manifest_id))
    if found.date:
        fields.append(("date", found.date))
    report = found.report
    if report is not None and report.status == "compacted":
        sums = f"{report.records:,} rows + {report.rejected_lines:,} rejects + {report.blank_lines:,} blank"
        fields.append(("lines", f"{report.lines:,} = {sums}"))
        if report.rejects:
            fields.append(("rejected", by_name(report.rejects)))
    if found.outputs:
        fields.append(("rows are in", "\n".join(found.outputs)))
    if found.rejects:
        fields.append(("rejects are in", "\n".join(found.rejects)))
    print_fields(fields)

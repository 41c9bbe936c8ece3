"""`compactor trace`: where is my file, my manifest, or where does this output come from?"""

from collections import Counter
from typing import Any

import click

from compactor.cli.failures import ExitCode, say
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.ui.output import print_fields, print_json, shallow
from compactor.core.formatting import by_name
from compactor.core.layout import MANIFEST_ID, canonical
from compactor.ops.trace.trace import Trace, TraceState
from compactor.ops.trace.tracer import SEARCHED_DAYS
from compactor.settings.places import parse_place
from compactor.wiring.app import App

SHOWN_FILES = 20

MEANINGS = {
    TraceState.UNKNOWN: "nothing that was searched names it",
    TraceState.CLAIMED: "claimed for a manifest that is not written yet",
    TraceState.PENDING: "announced; it waits in a pending part until there is enough for a manifest, or long enough",
    TraceState.WAITING: "in a manifest that nobody began yet",
    TraceState.IN_WORK: "in a manifest that was begun",
    TraceState.DECIDED: "committed, and not all of it is in its final place yet",
    TraceState.DONE: "done: every line is in the output, in the rejects, or blank",
    TraceState.QUARANTINED: "set aside whole; the rest of its manifest is done",
    TraceState.DEAD_LETTERED: "its manifest is a dead letter",
}
MEANINGS_OF_MANIFESTS = {
    TraceState.CLAIMED: "it is not written",
    TraceState.WAITING: "nobody began it yet",
    TraceState.IN_WORK: "it was begun",
    TraceState.DECIDED: "committed, and not all of it is in its final place yet",
    TraceState.DONE: "done: every line is in the output, in the rejects, or blank, but for files set aside",
    TraceState.DEAD_LETTERED: "it is a dead letter",
}
_NAMES = {"file": "file", "manifest": "manifest", "output": "output file", "rejects": "file of rejects"}


@click.command("trace")
@click.argument("thing", metavar="URI|MANIFEST_ID")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=SEARCHED_DAYS,
    show_default=True,
    help="Days of the ledger to search for a file that has no claim: its own day, then the newest.",
)
@json_option
@body
def trace(invocation: Invocation, *, thing: str, days: int, as_json: bool) -> ExitCode:
    """Tell where a file, a manifest or an output is.

    Takes the URI of an input file, of a manifest, of an output or rejects file, or a manifest id.

    Exit codes: 0 found; 1 not found; 3 it was set aside, alone or with its manifest, and not redriven.
    """
    found = _found(App(invocation.settings()), thing, days)
    if as_json:
        print_json(_document(found))
    elif found.trace_state is TraceState.UNKNOWN:
        say(_unknown(found))
    else:
        _show(found)
    if found.trace_state is TraceState.UNKNOWN:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if found.needs_operator else ExitCode.DONE


def _found(app: App, thing: str, days: int) -> Trace:
    """What is known of a thing: a name without `/` may be a manifest's id or a path."""
    if "/" in thing or not MANIFEST_ID.fullmatch(thing):
        return app.tracer.trace(_absolute(thing), days=days)
    found = app.tracer.trace_manifest(thing)
    if found.trace_state is not TraceState.UNKNOWN:
        return found
    as_file = app.tracer.trace(_absolute(thing), days=days)
    if as_file.trace_state is TraceState.UNKNOWN:
        as_file.searched = f"for a manifest {found.searched}; for a file {as_file.searched}"
    return as_file


def _absolute(uri: str) -> str:
    """The URI, literally; only a path that is none of these is one below the current working directory."""
    if canonical(uri).startswith(("s3://", "/")):
        return uri
    try:
        return parse_place(uri)
    except ValueError as exc:
        raise click.BadParameter(f"{uri!r} -> expected s3://bucket/key, file:///path or a path ({exc})") from exc


def _document(found: Trace) -> dict[str, Any]:
    return {**shallow(found), "meaning": _meaning(found), "needs_operator": found.needs_operator}


def _meaning(found: Trace) -> str:
    return (MEANINGS if found.kind == "file" else MEANINGS_OF_MANIFESTS).get(
        found.trace_state, MEANINGS[found.trace_state]
    )


def _unknown(found: Trace) -> str:
    there = "" if found.exists else "there is no such object now, and "
    move = f"; to take it in: {found.next_moves[0]}" if found.next_moves else ""
    return f"{found.uri}: {there}nothing is known of it; searched: {found.searched}{move}"


def _show(found: Trace) -> None:
    fields = [
        (_NAMES[found.kind], found.uri + ("" if found.exists else " (there is no such object now)")),
        ("trace_state", _meaning(found)),
        ("why" if found.needs_operator else "note", found.message),
        ("lines of", found.origin),
        ("manifest" if found.manifest_id != found.uri else "kept at", "\n".join(_manifest(found))),
        ("date", found.date),
        ("redriven from", found.redriven_from),
        ("attempts", "\n".join(_attempts(found))),
        ("lines", _lines(found)),
        ("rejected", by_name(found.report.rejects) if found.report is not None else ""),
        ("files", _files(found)),
        ("rows are in", "\n".join(found.outputs)),
        ("rejects are in", "\n".join(found.rejects)),
        ("redriven as", "\n".join(_redrives(found))),
        ("next", "\n".join(found.next_moves)),
    ]
    print_fields((name, value) for name, value in fields if value)


def _manifest(found: Trace) -> list[str]:
    """The manifest's id, unless that is what was asked for, and where it is."""
    return [each for each in (found.manifest_id, found.manifest_uri) if each and each != found.uri]


def _attempts(found: Trace) -> list[str]:
    ends = ((each, f": {each.error.splitlines()[0]}" if each.error else "") for each in found.attempts)
    return [f"{each.number} at {each.started_at:%Y-%m-%d %H:%M:%S} UTC{end}" for each, end in ends]


def _lines(found: Trace) -> str:
    report = found.report
    if report is None or report.status != "compacted":
        return ""
    sums = f"{report.records:,} rows + {report.rejected_lines:,} rejects + {report.blank_lines:,} blank"
    return f"{report.lines:,} = {sums}"


def _files(found: Trace) -> str:
    """How many input files of each status; those that are not compacted by name."""
    statuses = Counter(str(file.status) for file in found.files)
    others = [f"{file.status}: {file.uri}" for file in found.files if file.status != "compacted"]
    if len(others) > SHOWN_FILES:
        others = [*others[:SHOWN_FILES], f"and {len(others) - SHOWN_FILES:,} more; --json shows all"]
    return "\n".join([by_name(statuses), *others]).strip()


def _redrives(found: Trace) -> list[str]:
    return [f"{each.manifest_id} ({each.fate}): {by_name(each.counts)}" for each in found.redriven_as]

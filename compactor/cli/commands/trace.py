"""`compactor trace`: shows what happened to a file or manifest, or where an output came from."""

from collections import Counter

import click

from compactor.api.trace import find_trace
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_option, refuse_destination
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import Field, first_of, print_fields, print_json
from compactor.core.text.formatting import by_name, tally
from compactor.ops.trace.trace import TraceResult, TraceState
from compactor.ops.trace.tracer import SEARCHED_DAYS

SHOWN_LINES = 5

_NAMES = {"file": "file", "manifest": "manifest", "output": "output file", "rejects": "rejects file"}


@click.command("trace")
@click.argument("thing", metavar="URI|MANIFEST_ID")
@destination_option
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=SEARCHED_DAYS,
    show_default=True,
    help="For a file without a claim, search this many dates in the ledger: its own, then the newest.",
)
@reporting(TraceResult)
def trace(invocation: Invocation, *, thing: str, days: int, as_json: bool) -> ExitCode:
    """Show what happened to a file or manifest, or where an output came from.

    URI is the path or URI of an input file, a manifest, an output file or a rejects file.

    Exit codes: 0 found; 1 not found; 3 an unsettled dead letter or quarantined file: not redriven, and no later
    manifest has its lines.
    """
    refuse_destination(invocation, thing, "a file or a manifest id")
    found = find_trace(invocation.settings(), thing, days)
    if as_json:
        print_json(found)
    elif found.state is TraceState.UNKNOWN:
        say(_unknown(found))
    else:
        _show(found)
    if found.state is TraceState.UNKNOWN:
        return ExitCode.FAILED
    return ExitCode.NEEDS_OPERATOR if found.needs_operator else ExitCode.DONE


def _unknown(found: TraceResult) -> str:
    there = "" if found.exists else "no such object, and "
    move = f"; {'see' if found.message else 'to plan it'}: {found.next_moves[0]}" if found.next_moves else ""
    why = f"; {found.message}" if found.message else ""
    return f"{found.uri}: {there}in no record; searched: {found.searched}{why}{move}"


def _show(found: TraceResult) -> None:
    before = [f"{each.first_line:,} to {each.last_line:,} in manifest {each.manifest_id}" for each in found.earlier]
    fields: list[Field] = [
        (_NAMES[found.kind], found.uri + ("" if found.exists else " (no such object)")),
        ("state", found.meaning),
        ("why" if found.needs_operator else "note", found.message),
        ("lines of", found.origin),
        ("manifest" if found.manifest_id != found.uri else "kept at", _manifest(found)),
        ("date", found.date + (f" ({found.dated_by})" if found.dated_by else "")),
        ("redriven from", found.redriven_from),
        ("attempts", _attempts(found)),
        ("elements" if found.report is not None and found.report.format == "json" else "lines", _lines(found)),
        ("lines before", first_of(before)),
        ("rejected", _rejected(found)),
        ("files", _files(found)),
        ("rows are in", found.outputs),
        ("rejects are in", found.rejects),
        ("table", found.table.meaning if found.table is not None else ""),
        ("lost", _lost(found)),
        ("expired", found.expired),
        ("erased", found.erased),
        ("quarantined", _quarantined(found)),
        ("redriven as", _redrives(found)),
        ("settled", found.settled_by),
        ("to do", found.fixes),
        ("next", found.next_moves),
    ]
    print_fields((name, value) for name, value in fields if value)


def _manifest(found: TraceResult) -> list[str]:
    """The manifest's id and place, unless that was the question."""
    return [each for each in (found.manifest_id, found.manifest_uri) if each and each != found.uri]


def _attempts(found: TraceResult) -> list[str]:
    ends = ((each, f": {each.error.splitlines()[0]}" if each.error else "") for each in found.attempts)
    lines = [f"{each.number} at {each.started_at:%Y-%m-%d %H:%M:%S} UTC{end}" for each, end in ends]
    if found.earlier_attempts:
        lines.insert(0, f"{found.earlier_attempts:,} earlier ones, recorded only as a total")
    if found.next_attempt_at is not None:
        lines.append(f"the next one is due at {found.next_attempt_at:%Y-%m-%d %H:%M:%S} UTC")
    return lines


def _lines(found: TraceResult) -> str:
    if found.lines is None:
        return ""
    sums = tally(found.rows or 0, found.rejected_lines or 0, found.blank_lines or 0, found.erased_lines or 0)
    return f"{found.lines:,} = {sums}"


def _rejected(found: TraceResult) -> list[str]:
    """The rejected lines by reason, and the first ones by number."""
    if not found.rejected_lines:
        return []
    named = ", ".join(f"{each.line_number:,} {each.reason}" for each in found.rejected[:SHOWN_LINES])
    more = " ..." if found.rejected_lines > SHOWN_LINES else ""
    return [by_name(found.rejects_by_reason), *([f"line {named}{more}"] if named else [])]


def _files(found: TraceResult) -> list[str]:
    """The number of input files per status, and the files that are not compacted."""
    statuses = Counter(str(file.status) for file in found.files)
    others = [f"{file.status}: {file.uri}" for file in found.files if file.status != "compacted"]
    return [by_name(statuses), *first_of(others)] if statuses else []


def _quarantined(found: TraceResult) -> list[str]:
    """The quarantined versions of a file, except one that its state describes."""
    files = found.quarantined if found.kind == "file" else ()
    shown_id = found.manifest_id if found.needs_operator and found.state is TraceState.QUARANTINED else ""
    return [
        f"{each.status} in manifest {each.manifest_id}; {each.fate}" for each in files if each.manifest_id != shown_id
    ]


def _lost(found: TraceResult) -> list[str]:
    return first_of([f"{each.uri}{f': {each.settled_by}' if each.settled_by else ''}" for each in found.lost])


def _redrives(found: TraceResult) -> list[str]:
    return [f"{each.manifest_id} ({each.fate}): {by_name(each.counts)}" for each in found.redriven_as]

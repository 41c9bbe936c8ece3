"""`compactor rejects`: shows rejected lines, and what is wrong with each."""

import sys

import click

from compactor.api.rejects_search import RejectsSearch, diagnosed_line, rejects_search
from compactor.cli.commands.plan import date_option
from compactor.cli.destination import destination_argument
from compactor.cli.invocation import Invocation, body, json_option, stream_option
from compactor.cli.ui.excerpt import excerpt
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import json_text, picked
from compactor.cli.ui.terminal import echo, fitted, terminal_columns, write_out
from compactor.core.text.formatting import by_name, count
from compactor.ndjson.diagnosis import column_of
from compactor.ndjson.inspection import REASONS
from compactor.ops.rejects.query import Query
from compactor.ops.rejects.reader import RejectedLine, RejectsOf

SHOWN = 20
_JSON_WIDTH = 200
_LEAST_WIDTH, _USUAL_WIDTH, _MOST_WIDTH = 40, 80, 120
_INDENT = "  "


@click.command("rejects")
@destination_argument
@click.option("--reason", type=click.Choice(list(REASONS)), help="Show only lines rejected for this reason.")
@click.option("--file", metavar="FILE", help="Show only lines of this file: its URI or path, or the end of it.")
@date_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show at most N lines; 0 for all. Default: {SHOWN}; all with --json and --raw.",
)
@click.option("--raw", is_flag=True, help="Write the exact bytes of the lines, and nothing else.")
@json_option
@stream_option
@body
def rejects(
    invocation: Invocation,
    *,
    reason: str | None,
    file: str | None,
    day: str | None,
    limit: int | None,
    raw: bool,
    as_json: bool,
) -> ExitCode:
    """Show rejected lines: where each is, and what is wrong with it.

    Each line is shown as FILE:LINE:COLUMN with the reason, what was expected there, and the text around it. Control
    characters and bytes that are not UTF-8 are escaped; --raw writes them as they are.

    Exit codes: 3 if some rejects cannot be read.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json both take stdout; expected one of them")
    if raw and _is_terminal():
        raise click.UsageError("--raw writes bytes that may act on a terminal; expected a file or a pipe")
    search = rejects_search(invocation.settings(), reason=reason, file=file, day=day)
    if raw:
        _write_raw(search, limit or None)
    elif as_json:
        _print_json(search, limit or None)
    else:
        _show(search, SHOWN if limit is None else limit or None)
    for fault in search.unreadable:
        say(fault)
    return ExitCode.NEEDS_OPERATOR if search.unreadable else ExitCode.DONE


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _show(search: RejectsSearch, limit: int | None) -> None:
    width = min(max(terminal_columns() or _USUAL_WIDTH, _LEAST_WIDTH), _MOST_WIDTH) - len(_INDENT)
    for _, line in search.lines(limit):
        fault = diagnosed_line(line)
        column = "" if fault.offset is None else f":{column_of(line.head, fault.offset)}"
        text, mark = excerpt(line.head, fault.offset, width=width)
        marked = [f"{_INDENT}{mark}"] if mark else []
        told = f"{line.source_uri}:{line.line_number}{column}: {line.reason}: {fault.message}"
        head, *more = fitted(told, indent=2 * len(_INDENT))
        echo(head, *(2 * _INDENT + piece for piece in more), _INDENT + text, *marked)
    _show_sum(search)


def _show_sum(search: RejectsSearch) -> None:
    total = search.counts.total()
    if not search.shown and not total:
        echo("No rejected lines." if search.query == Query() else "No rejected lines match.")
        return
    least = "" if search.is_complete else "at least "
    of = "" if search.shown == total and search.is_complete else f"{search.shown:,} of "
    echo("", f"{of}{least}{count(total, 'rejected line')}: {by_name(search.counts)}" if total else "")
    if search.shown < total - search.unkept:
        echo("--limit 0 shows all, --reason and --file some; --raw writes their bytes")
    for why, rows in sorted(search.expired.items()):
        echo(f"{count(rows, 'rejected line')} {why}")
    if search.unkept:
        echo(f"{count(search.unkept, 'line')} only counted: there were too many to keep")
    if search.sampled:
        echo(f"{count(len(search.sampled), 'file')} quarantined whole; the lines shown of them are samples")


def _write_raw(search: RejectsSearch, limit: int | None) -> None:
    """Write the lines byte for byte, each with a line feed, without holding one whole."""
    previous: tuple[str, int] | None = None
    lines = 0
    for found in search.reader.manifests(search.query):
        for piece in search.reader.pieces(found, search.query):
            if piece[:2] != previous:
                if lines == limit:
                    write_out(b"")
                    return
                write_out(b"", nl=previous is not None)
                previous, lines = (piece.source_uri, piece.line_number), lines + 1
            write_out(piece.raw, nl=False)
    write_out(b"", nl=previous is not None)


def _print_json(search: RejectsSearch, limit: int | None) -> None:
    """Print the document line by line: there may be more rejects than fit into memory."""
    separator = '{"rejects": [\n'
    for found, line in search.lines(limit):
        write_out(separator + json_text(_entry(found, line), on_one_line=True), nl=False)
        separator = ",\n"
    closing = {
        "shown": search.shown,
        "lines": search.counts.total(),
        "by_reason": dict(search.counts),
        "unkept": search.unkept,
        "is_complete": search.is_complete,
        "expired": dict(search.expired),
        "unreadable": search.unreadable,
    }
    head = separator if not search.shown else "\n"
    write_out(f"{head}],\n{json_text(closing, on_one_line=True)[1:]}".encode())


def _entry(found: RejectsOf, line: RejectedLine) -> dict[str, object]:
    fault = diagnosed_line(line)
    text, _ = excerpt(line.head, fault.offset, width=_JSON_WIDTH)
    return {
        "uri": line.source_uri,
        **picked(line, "line_number", "byte_offset", "reason", "length_bytes"),
        "manifest_id": found.commit.manifest_id,
        "date": found.commit.date,
        "column": None if fault.offset is None else column_of(line.head, fault.offset),
        "message": fault.message,
        "text": text,
        "is_sample": line.source_uri in found.samples,
    }

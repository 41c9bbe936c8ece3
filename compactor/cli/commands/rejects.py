"""`compactor rejects`: shows rejected lines and their faults."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click
from rich.cells import cell_len

from compactor.api.rejects import rejects_search
from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import date_option, destination_argument
from compactor.cli.ui.failures import ExitCode, say
from compactor.cli.ui.output import json_text
from compactor.cli.ui.terminal import echo, fitted, terminal_columns, write_out
from compactor.core.results import document
from compactor.core.text.formatting import by_name, count
from compactor.core.text.safe_text import visible
from compactor.ndjson.inspection import REASONS
from compactor.ops.rejects import Query, RejectedLine, RejectsOf, RejectsSearch

_CUT = "..."
_MOST_BYTES = 4  # in a UTF-8 character
_CONTINUES = range(0x80, 0xC0)  # continuation bytes


def excerpt(line: bytes, offset: int | None, *, width: int) -> tuple[str, str]:
    r"""Show part of a line.

    Args:
        line: Any bytes. Invalid UTF-8 and everything that acts on a terminal become escapes such as `\xe9`.
        offset: The byte to show and mark; None for the beginning of the line, without a mark.
        width: The most terminal columns.

    Returns:
        The part, and the mark with its indentation; empty without one.
    """
    at = min(offset or 0, len(line))
    start, end = _characters_from(line, max(0, at - width)), min(len(line), at + _MOST_BYTES * width)
    room = width - 2 * len(_CUT)
    before, is_begin = _fitting(reversed(list(_shown(line[start:at]))), room // 2 if len(line) > at else room)
    indent = sum(map(cell_len, before))
    after, is_end = _fitting(_shown(line[at:end]), room - indent)
    head = "" if is_begin and start == 0 else _CUT
    tail = "" if is_end and end == len(line) else _CUT
    text = head + "".join(reversed(before)) + "".join(after) + tail
    return text, "" if offset is None else " " * (len(head) + indent) + "^"


def _characters_from(line: bytes, start: int) -> int:
    """The first byte of the character that contains a byte."""
    for at in range(start, max(start - _MOST_BYTES, -1), -1):
        if at >= len(line) or line[at] not in _CONTINUES:
            return at
    return start


def _shown(part: bytes) -> Iterator[str]:
    """Yields each character as shown."""
    return map(visible, part.decode(errors="backslashreplace"))


def _fitting(characters: Iterable[str], room: int) -> tuple[list[str], bool]:
    """As many characters as fit; and whether that is all of them."""
    found: list[str] = []
    for character in characters:
        room -= cell_len(character)
        if room < 0:
            return found, False
        found.append(character)
    return found, True


SHOWN = 20
_JSON_WIDTH = 200
_LEAST_WIDTH, _USUAL_WIDTH, _MOST_WIDTH = 40, 80, 120
_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReject:
    """A rejected line."""

    uri: str  # its file
    line_number: int  # from 1; blank lines count
    byte_offset: int  # where the line starts in the decoded file
    reason: str
    length_bytes: int  # the complete line's length
    manifest_id: str  # manifest that rejected it
    date: str  # date of that manifest
    column: int | None  # column of the fault, in characters from 1; null if unknown
    message: str  # what is wrong there, and what was expected
    kept: str | None  # what `input.keep` would have carried into it, as a JSON object; null for nothing
    text: str  # text around the fault, with escapes for all that acts on a terminal
    is_sample: bool  # whether its complete file was quarantined, so that this is only a sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejects:
    """Rejected lines, by manifest and file."""

    rejects: Sequence[ShownReject]  # the lines, up to `--limit`
    shown: int  # number of lines in `rejects`
    lines: int  # rejected lines selected by `--reason`, `--file` and `--date`
    by_reason: Mapping[str, int]  # the same by reason
    unkept: int  # selected lines that are only counted: too many to keep
    is_complete: bool  # whether all manifests were counted; if not, there may be more lines
    expired: Mapping[str, int]  # rejected lines of expired files, by time and rule
    unreadable: Sequence[str]  # unreadable records and what to do about them: the exit code is 3


@click.command("rejects")
@destination_argument
@click.option("--reason", type=click.Choice(list(REASONS)), help="Show only lines rejected for this reason.")
@click.option("--file", metavar="FILE", help="Show only lines of this file: its URI or path, or the end of one.")
@date_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show at most N lines; 0 for all. Default: {SHOWN}; all with --json and --raw.",
)
@click.option("--raw", is_flag=True, help="Write only the exact bytes of the lines.")
@reporting(Rejects)
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
    """Show rejected lines: their places and faults.

    Shows each line as FILE:LINE:COLUMN with the reason, what was expected there, and the surrounding text. Control
    characters and invalid UTF-8 are escaped; --raw writes them as they are.

    Exit codes: 3 if some rejects are unreadable.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json both write to stdout; expected one of them")
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
        column = "" if line.column is None else f":{line.column}"
        text, mark = excerpt(line.head, line.fault.offset, width=width)
        marked = [f"{_INDENT}{mark}"] if mark else []
        place_and_fault = f"{line.source_uri}:{line.line_number}{column}: {line.reason}: {line.fault.message}"
        head, *more = fitted(place_and_fault, indent=2 * len(_INDENT))
        echo(head, *(2 * _INDENT + piece for piece in more), _INDENT + text, *marked)
    _show_sum(search)


def _show_sum(search: RejectsSearch) -> None:
    total = search.counts.total()
    if not search.shown and not total:
        echo("No rejected lines." if search.query == Query() else "No rejected lines match.")
        if unknown := search.unknown_file():
            say(unknown)
        return
    least = "" if search.is_complete else "at least "
    of = "" if search.shown == total and search.is_complete else f"{search.shown:,} of "
    echo("", f"{of}{least}{count(total, 'rejected line')}: {by_name(search.counts)}" if total else "")
    if search.shown < total - search.unkept:
        echo("--limit 0 shows all, --reason and --file select; --raw writes their bytes")
    for why, rows in sorted(search.expired.items()):
        echo(f"{count(rows, 'rejected line')} {why}")
    if search.unkept:
        echo(f"{count(search.unkept, 'line')} only counted: there were too many to keep")
    if search.sampled:
        echo(f"{count(len(search.sampled), 'file')} quarantined completely; the lines shown of them are samples")


def _write_raw(search: RejectsSearch, limit: int | None) -> None:
    """Write the lines byte for byte, each with a line feed, without loading a complete line."""
    previous: tuple[str, int] | None = None
    lines = 0
    for found in search.manifests():
        for piece in search.pieces(found):
            if piece[:2] != previous:
                if lines == limit:
                    write_out(b"")
                    return
                write_out(b"", nl=previous is not None)
                previous, lines = (piece.source_uri, piece.line_number), lines + 1
            write_out(piece.raw, nl=False)
    write_out(b"", nl=previous is not None)


def _print_json(search: RejectsSearch, limit: int | None) -> None:
    """Print the document line by line: the rejects may not fit into memory."""
    separator = '{"rejects": [\n'
    for found, line in search.lines(limit):
        write_out(separator + json_text(_entry(found, line), on_one_line=True), nl=False)
        separator = ",\n"
    closing = document(
        Rejects(
            rejects=(),
            shown=search.shown,
            lines=search.counts.total(),
            by_reason=search.counts,
            unkept=search.unkept,
            is_complete=search.is_complete,
            expired=search.expired,
            unreadable=search.unreadable,
        )
    )
    del closing["rejects"]  # already printed
    head = separator if not search.shown else "\n"
    write_out(f"{head}],\n{json_text(closing, on_one_line=True)[1:]}".encode())


def _entry(found: RejectsOf, line: RejectedLine) -> ShownReject:
    text, _ = excerpt(line.head, line.fault.offset, width=_JSON_WIDTH)
    return ShownReject(
        uri=line.source_uri,
        line_number=line.line_number,
        byte_offset=line.byte_offset,
        reason=line.reason,
        length_bytes=line.length_bytes,
        manifest_id=found.commit.manifest_id,
        date=found.commit.date,
        column=line.column,
        message=line.fault.message,
        kept=line.kept,
        text=text,
        is_sample=line.source_uri in found.samples,
    )

"""The screen of `compactor status`: the next action first, then what it is based on."""

import textwrap

from rich.text import Text

from compactor.cli.ui.status.fields import INDENT, LEAST_WIDTH, fields, rough, short
from compactor.control.diagnosis.health import Condition, Word
from compactor.core.documents.records import RecentCommit
from compactor.core.text.safe_text import visible
from compactor.ops.status.values import Status

MOST_WIDTH = 120
_LEAST_COMMITS, _MOST_COMMITS = 1, 10
_STYLES: dict[Word, str] = {
    "empty": "bold",
    "idle": "bold green",
    "running": "bold green",
    "stopping": "bold yellow",
    "behind": "bold yellow",
    "needs_you": "bold yellow",
    "stopped": "bold red",
    "stuck": "bold red",
}
_HEADINGS = ("ago", "latest commits", "MB in", "MB out", "files", "rows", "rejects", "took")
_ROW = "{:>6} {:{names}} {:>6} {:>6} {:>5} {:>10} {:>7} {:>6}\n"
"""A row of the table of commits. The names of manifests get the width that is left."""


def screen(found: Status, *, width: int = LEAST_WIDTH, height: int = 40, error: str = "") -> Text:
    """The whole screen; `error` says why nothing newer could be read.

    At least 80 columns are used. The list of commits is cut to fit the height.
    """
    width = min(max(width, LEAST_WIDTH), MOST_WIDTH)
    text = _head(found, width)
    if error:
        text.append("\n".join([*_wrapped(f"Cannot read the status: {error}", width), ""]), "bold red")
    text.append("\n")
    for name, lines, style in fields(found):
        wrapped = [part for line in lines for part in _wrapped(line, width - INDENT)]
        for number, line in enumerate(wrapped):
            text.append(f"{name if not number else '':{INDENT}}", style or "dim")
            text.append(f"{line}\n", style)
    left = height - len(text.plain.splitlines()) - 3
    if found.recent:
        text.append("\n")
        text.append_text(_commits(found, width, min(max(left, _LEAST_COMMITS), _MOST_COMMITS)))
    text.rstrip()
    return text


def _head(found: Status, width: int) -> Text:
    state, moment = found.state, f"{found.as_of:%Y-%m-%d %H:%M:%S} UTC"
    word = state.word.upper().replace("_", " ")
    text = Text()
    # A job that ended with nothing to do is `stopped`, too.
    style = "bold" if state.condition is Condition.ALL_DONE else _STYLES[state.word]
    text.append(f"{word:{width - len(moment)}}", style)
    text.append(f"{moment}\n", "dim")
    text.append("\n".join([*_wrapped(f"{state.reason[:1].upper()}{state.reason[1:]}.", width), ""]))
    if state.next_move:
        text.append("\n".join([*_wrapped(f"Next: {state.next_move}", width), ""]), "bold")
    return text


def _commits(found: Status, width: int, rows: int) -> Text:
    names = width + 2 - len(_ROW.format(*[""] * len(_HEADINGS), names=1))
    text = Text()
    text.append(_ROW.format(*_HEADINGS, names=names), "dim")
    for commit in found.recent[::-1][:rows]:
        text.append(_ROW.format(*_cells(commit, found, names), names=names))
    return text


def _cells(commit: RecentCommit, found: Status, names: int) -> list[str]:
    return [
        rough((found.as_of - commit.decided_at).total_seconds()),
        short(commit.manifest_id, names),
        _megabytes(commit.input_bytes),
        _megabytes(commit.output_bytes),
        f"{commit.output_files:,}",
        f"{commit.records:,}",
        f"{commit.rejected_lines:,}",
        rough(commit.seconds),
    ]


def _megabytes(length_bytes: int) -> str:
    """Millions of bytes, in at most six characters up to a terabyte."""
    amount = length_bytes / 1e6
    return f"{amount:.2f}" if amount < 1 else f"{amount:.1f}" if amount < 1000 else f"{amount:,.0f}"  # noqa: PLR2004


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most this width. A word is never broken, so that commands can be copied."""
    return textwrap.wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [""]

"""The pieces that sections of the page are made of: sections, tables, legends, texts with code. HTML, no I/O."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from compactor.core.formatting import count
from compactor.ops.report.markup import Child, Markup, element, joined
from compactor.ops.report.period import Period

_CODE = re.compile(r"`([^`]+)`")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]B|MiB|MB/s|min|h|s|d)(?!\w))")
_FULL_MINUTE = 60
SHOWN_ENTRIES = 10

Swatch = Literal["in", "out", "p50", "p99", "small"]


@dataclass(frozen=True, slots=True)
class Table:
    """Data behind a chart.

    Attributes:
        name: Tells it from all others of the page.
        caption: What the rows are.
        columns: Headings; all columns but the first `words` hold numbers.
        foot: One more row, of sums.
        words: How many columns hold words.
        summary: What it is called while it is folded.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    foot: Sequence[str] = ()
    words: int = 1
    summary: str = "The data as a table"


def section(key: str, heading: str, *children: Child) -> Markup:
    """A part of the page that can be jumped to."""
    return element(
        "section", element("h2", heading, id=f"{key}-heading"), *children, id=key, aria_labelledby=f"{key}-heading"
    )


def beside(words: Child, chart: Child, data: Child) -> Markup:
    """A chart with what it shows in words beside it, and its data beneath."""
    return element(
        "div", element("div", words), element("div", chart), element("div", data, class_="data"), class_="beside"
    )


def prose(text: str) -> Markup:
    """A paragraph; what is between back-quotes is code. Only for words of the program's own."""
    return element("p", coded(text))


def coded(text: str) -> Markup:
    """Text in which what is between back-quotes is code, and a number stays beside its unit."""
    pieces = _CODE.split(_UNIT.sub("\N{NO-BREAK SPACE}", text))
    return joined(element("code", piece) if number % 2 else piece for number, piece in enumerate(pieces))


def folded_table(table: Table) -> Markup:
    """A table that is shown when somebody opens it. By keyboard it can be opened, and moved sideways."""
    summary = element("summary", f"{table.summary} ({count(len(table.rows), 'row')})")
    return element("details", summary, scrolled(table))


def scrolled(table: Table) -> Markup:
    """A table that moves sideways within its own bounds where it is too wide."""
    parts = [
        element("caption", table.caption),
        element("thead", _row(table, table.columns, "col")),
        element("tbody", *(_row(table, row, "row") for row in table.rows)),
        element("tfoot", _row(table, table.foot, "row")) if table.foot else None,
    ]
    shown = element("table", *parts, id=f"data-{table.name}")
    return element("div", shown, class_="scroll", tabindex=0, role="region", aria_label=table.caption)


def _row(table: Table, cells: Sequence[str], scope: str) -> Markup:
    shown = []
    for number, cell in enumerate(cells):
        is_heading = scope == "col" or number == 0
        kind = "number" if number >= table.words else None
        name = "th" if is_heading else "td"
        shown.append(element(name, cell, scope=scope if is_heading else None, class_=kind))
    return element("tr", *shown)


def legend(*entries: tuple[Swatch, str]) -> Markup:
    """What the marks of a chart stand for."""
    return element("ul", *(element("li", _swatch(kind), words) for kind, words in entries), class_="legend")


def _swatch(kind: Swatch) -> Markup:
    shapes = {
        "in": [element("rect", class_="in", x=2, y=2, width=18, height=8)],
        "small": [
            element("rect", class_="small", x=2.5, y=2.5, width=17, height=8, fill="none"),
            element("path", class_="hatch-line", d="M3 9l6-6M8 10l7-7M14 10l5-5"),
        ],
        "out": [element("path", class_="out", d="M1 9H8V4H14V7H21")],
        "p50": [element("path", class_="p50", d="M1 6H21"), element("circle", class_="dot", cx=11, cy=6, r=3)],
        "p99": [
            element("path", class_="p99", d="M1 6H21"),
            element("path", class_="diamond", d="M11 2l4 4l-4 4l-4-4z"),
        ],
    }
    return element("svg", *shapes[kind], width=22, height=12, viewBox="0 0 22 12", aria_hidden="true")


def entries(items: Sequence[Markup], thing: str) -> Markup:
    """A list whose first few are shown at once, the others when somebody asks for them."""
    shown = element("ul", *(element("li", each) for each in items[:SHOWN_ENTRIES]), class_="entries")
    rest = items[SHOWN_ENTRIES:]
    if not rest:
        return shown
    more = element("ul", *(element("li", each) for each in rest), class_="entries")
    return joined([shown, element("details", element("summary", f"{count(len(rest), f'more {thing}')}"), more)])


def numbers(*values: int) -> tuple[str, ...]:
    """Whole numbers as cells of a table."""
    return tuple(f"{value:,}" for value in values)


def moment(when: datetime) -> str:
    """A time of UTC, to the second."""
    return f"{when:%Y-%m-%d %H:%M:%S}"


def piece(span: Period, step_seconds: int) -> str:
    """When a piece of the period begins, as exactly as pieces are told apart."""
    is_whole = step_seconds >= _FULL_MINUTE and not span.since.second
    return f"{span.since:%Y-%m-%d %H:%M}" if is_whole else moment(span.since)


def state(is_redriven: bool | None) -> Markup:
    """Whether something was put back, in words and only then in colour."""
    if is_redriven is None:
        return element("span", "whether it was put back cannot be read", class_="state open")
    words, kind = ("put back", "closed") if is_redriven else ("not put back", "open")
    return element("span", words, class_=f"state {kind}")

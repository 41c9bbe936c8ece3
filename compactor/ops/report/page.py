"""The page: one file of HTML that needs nothing else, and lets nothing else in. No I/O."""

from compactor import __version__
from compactor.core.formatting import DASH, count, dollars, duration, percent, size
from compactor.ops.report.markup import Markup, element, joined
from compactor.ops.report.parts import Table, coded, moment, prose, scrolled, section
from compactor.ops.report.report import Report
from compactor.ops.report.section_cost import cost
from compactor.ops.report.section_schema import schema
from compactor.ops.report.section_sizes import sizes
from compactor.ops.report.sections_faults import quarantined, rejects
from compactor.ops.report.sections_flow import arrivals, durations, throughput
from compactor.ops.report.style import SHEET

_NOTHING_IN = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""The browser itself refuses scripts and requests, whatever a file's name is made to look like."""

SECTIONS = (
    ("account", "Account"),
    ("throughput", "Throughput"),
    ("durations", "Manifests"),
    ("arrivals", "Arrival to visible"),
    ("sizes", "File sizes"),
    ("rejects", "Rejects"),
    ("set-aside", "Set aside"),
    ("schema", "Schema"),
    ("cost", "Cost"),
)


def page(report: Report) -> str:
    """The whole document."""
    totals = report.figures.totals
    keys = dict(SECTIONS)
    parts = [_account(report)]
    if totals.manifests:
        parts += [throughput(report), durations(report), arrivals(report), sizes(report), rejects(report)]
    else:
        for key in ("throughput", "durations", "arrivals", "sizes", "rejects"):
            del keys[key]
    parts += [quarantined(report), schema(report), cost(report)]
    body = element(
        "body",
        element("a", "Skip to the report", href="#report", class_="skip"),
        _header(report, keys),
        element("main", _verdict(report), *parts, id="report", tabindex="-1"),
        _footer(report),
    )
    return "<!DOCTYPE html>\n" + element("html", _head(report), body, lang="en") + "\n"


def _head(report: Report) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NOTHING_IN),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", f"Compactor report, {_period(report)}"),
        element("style", Markup(SHEET)),
    )


def _period(report: Report) -> str:
    period = report.figures.period
    return f"{moment(period.since)} to {moment(period.until)} UTC"


def _header(report: Report, keys: dict[str, str]) -> Markup:
    links = element("ul", *(element("li", element("a", name, href=f"#{key}")) for key, name in keys.items()))
    return element(
        "header",
        element("h1", "Compactor report"),
        element("p", f"{_period(report)} ({duration(report.figures.period.seconds)})"),
        element("p", report.place, class_="place"),
        element("nav", links, aria_label="Sections"),
    )


def _verdict(report: Report) -> Markup:
    verdict, totals = report.verdict, report.figures.totals
    if totals.manifests:
        words = (
            f"{count(totals.manifests, 'manifest')} of {count(totals.input_files, 'file')} became "
            f"{count(totals.rows, 'row')} in {count(totals.output_files, 'Parquet file')}."
        )
    else:
        words = "No manifest was committed: there is nothing to draw. Was the job up, and did files come?"
    points = element("ul", *(element("li", coded(point.text)) for point in verdict.points)) if verdict.points else None
    return element(
        "section",
        element("h2", verdict.headline, id="verdict-heading"),
        prose(words),
        points,
        class_=f"verdict {verdict.health}",
        id="verdict",
        aria_labelledby="verdict-heading",
    )


def _account(report: Report) -> Markup:
    totals, spent = report.figures.totals, report.spending
    arrival = totals.arrivals
    p99 = duration(arrival.p99_seconds) if arrival else DASH
    tiles = (
        ("Manifests committed", f"{totals.manifests:,}", f"{count(totals.failed_attempts, 'failed attempt')}"),
        ("Input", size(totals.input_bytes), count(totals.input_files, "file")),
        ("Parquet", size(totals.output_bytes), count(totals.output_files, "file")),
        (
            "Rejected lines",
            f"{totals.rejected_lines:,}",
            percent(totals.rejected_lines, totals.lines - totals.blank_lines),
        ),
        ("Arrival to visible, p99", p99, f"SLA {duration(report.sla_seconds)}"),
        ("Dead letters", f"{totals.dead_letters:,}", f"{totals.redrives:,} put back in the period"),
        ("At work", percent(totals.at_work_seconds, report.figures.period.seconds), "of the time"),
        ("Classic plan", dollars(spent.classic_dollars), "for the period"),
    )
    shown = [
        element("div", element("dt", name), element("dd", value, element("span", more))) for name, value, more in tiles
    ]
    rows = [(f"{totals.lines:,}", f"{totals.rows:,}", f"{totals.rejected_lines:,}", f"{totals.blank_lines:,}")]
    table = Table("account", "Every line is on record once", ("lines read", "rows", "rejected", "blank"), rows, words=0)
    adds_up = totals.lines == totals.rows + totals.rejected_lines + totals.blank_lines
    words = (
        "Rows, rejected and blank lines add up to the lines read."
        if adds_up
        else ("Rows, rejected and blank lines do not add up to the lines read: see `compactor verify`.")
    )
    return section("account", "Account", element("dl", *shown, class_="tiles"), scrolled(table), prose(words))


def _footer(report: Report) -> Markup:
    unreadable = report.figures.unreadable
    listed = element("ul", *(element("li", message) for message in unreadable)) if unreadable else None
    words = (
        f"Made {moment(report.made_at)} UTC by compactor {__version__} from the ledger. A manifest counts in the "
        "period in which its rows could be seen. Sums are exact; p50 and p99 are to a second or about 1 %. "
        "Sizes in MB and GB are decimal."
    )
    return element("footer", joined([prose(words), listed]))

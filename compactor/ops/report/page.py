"""Renders a report as one HTML file that needs no network and runs no script."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compactor import __version__
from compactor.core.documents.manifest import REASONS as DEAD_LETTER_REASONS
from compactor.core.text.formatting import DASH, by_name, count, dollars, duration, percent, rate, size
from compactor.core.text.safe_text import visible
from compactor.cost.price_table import AS_OF
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ndjson.inspection import REASONS as REJECT_REASONS
from compactor.ops.report import charts
from compactor.ops.report.charts import Times
from compactor.ops.report.figures import SHOWN_BYTES, SHOWN_VERSIONS, Bucket, Figures
from compactor.ops.report.report import Report

MIN_POINTS = 5
"""Buckets with data, bars, schema versions or reasons that make a chart; a table shows fewer."""

CHARTED_REASONS = 10
MIN_COMPARED_BYTES = 1e9
MIN_COMPARED_SHARE = 0.01
"""Input, and share of the period at work, below which a price per terabyte or for all of the period misleads."""

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
_CODE = re.compile(r"`([^`]+)`")


def page(report: Report) -> str:
    """The whole document."""
    found, spent, sla_seconds = report.figures, report.spending, report.sla_seconds
    of_manifests = [(each, each.durations) for each in found.buckets]
    of_files = [(each, each.latency) for each in found.buckets]
    half_seconds = None if sla_seconds is None else sla_seconds / 2
    times = {
        "durations": Times("durations", found.totals.durations, of_manifests, half_seconds),
        "arrivals": Times("arrivals", found.totals.latency, of_files, sla_seconds),
    }
    return environment.get_template("page.html.j2").render(
        report=report,
        figures=found,
        totals=found.totals,
        spent=spent,
        suggest=report.suggest.marked(),
        times=times,
        charts=_charts(found, times),
        active=[each for each in found.buckets if each.manifests],
        bins=[each for each in found.sizes.bins if each.files],
        compares=spent.is_job_named or spent.at_work_seconds >= MIN_COMPARED_SHARE * spent.elapsed_seconds,
        has_terabyte_price=found.totals.input_bytes >= MIN_COMPARED_BYTES,
    )


def _charts(found: Figures, times: dict[str, Times]) -> dict[str, Markup | None]:
    """The chart of each section; None where there is too little data for one."""
    period, durations, arrivals, changes = found.period, times["durations"], times["arrivals"], found.schema.changes
    rates = partial(charts.rates, period=period, buckets=found.buckets)
    times_of = partial(charts.times, period=period)
    columns = partial(charts.columns, period=period, changes=changes)
    wanted = (
        ("throughput", "Input and output over time", durations.points, rates),
        ("durations", "Manifest duration over time", durations.points, partial(times_of, found=durations)),
        ("arrivals", "Arrival to visible over time", arrivals.points, partial(times_of, found=arrivals)),
        (
            "sizes",
            "Output files by size",
            sum(each.files > 0 for each in found.sizes.bins),
            partial(charts.sizes, found=found.sizes),
        ),
        ("schema", "Columns of the schema over time", len(changes), columns),
    )
    return {
        section: charts.svg(draw, title, section) if number >= MIN_POINTS else None
        for section, title, number, draw in wanted
    }


def _shown(value: object) -> object:
    """What Jinja writes for an expression, before it escapes HTML."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def coded(text: str) -> Markup:
    """Text in which the parts between back-quotes are code."""
    pieces = _CODE.split(visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else piece for number, piece in enumerate(pieces)
    )


def moment(when: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{when:%Y-%m-%d %H:%M:%S}"


def start(since: datetime) -> str:
    """The start of a bucket: to the minute if it is a whole one."""
    return moment(since) if since.second else f"{since:%Y-%m-%d %H:%M}"


def interval(buckets: Sequence[Bucket]) -> str:
    """The time from the first of some buckets to the end of the last."""
    since, until = buckets[0].since, buckets[-1].until
    end = start(until)
    return f"{start(since)} to {end.partition(' ')[2] if since.date() == until.date() else end} UTC"


def _unbroken(amount: str) -> str:
    return amount.replace(" ", NO_BREAK_SPACE)


environment = Environment(
    loader=PackageLoader(str(__package__)),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "by_name": by_name,
    "code": coded,
    "count": count,
    "dollars": dollars,
    "duration": lambda seconds: _unbroken(duration(seconds)),
    "interval": interval,
    "mib": lambda length_bytes: f"{length_bytes / charts.MIB:,.4g}",
    "moment": moment,
    "n": lambda number, digits=None: f"{number:,}" if digits is None else f"{number:,.{digits}f}",
    "of": lambda part, whole: _unbroken(percent(part, whole)),
    "per": lambda length_bytes, seconds: _unbroken(rate(length_bytes, seconds)),
    "size": lambda length_bytes: _unbroken(size(length_bytes)),
    "start": start,
}
environment.globals |= {
    "CHARTED_REASONS": CHARTED_REASONS,
    "MIN_POINTS": MIN_POINTS,
    "DASH": DASH,
    "DEAD_LETTER_REASONS": DEAD_LETTER_REASONS,
    "PRICES_AS_OF": AS_OF,
    "REJECT_REASONS": REJECT_REASONS,
    "SHOWN_BYTES": SHOWN_BYTES,
    "SHOWN_VERSIONS": SHOWN_VERSIONS,
    "TOLERANCE": f"{100 * SIZE_TOLERANCE:g}{NO_BREAK_SPACE}%",
    "VERSION": __version__,
}

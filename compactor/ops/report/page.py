"""Renders a report as one self-contained HTML file without scripts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

import pygal
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compactor import __version__
from compactor.core.distributions import Spread
from compactor.core.documents.manifest import REASONS as DEAD_LETTER_REASONS
from compactor.core.text.formatting import DASH, by_name, count, dollars, duration, percent, rate, size
from compactor.core.text.safe_text import visible
from compactor.cost.price_table import AS_OF
from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ndjson.inspection import REASONS as REJECT_REASONS
from compactor.ops.report.figures import SHOWN_BYTES, SHOWN_VERSIONS, Bucket
from compactor.ops.report.period import DAY_SECONDS, Period, round_moments, step_for
from compactor.ops.report.report import Report

MIN_POINTS = 5
"""The least buckets with data for a chart; a table shows fewer."""

MIN_COMPARED_BYTES = 1e9
MIN_COMPARED_SHARE = 0.01
"""With less input or a smaller share of time at work, a price per terabyte or for the complete period misleads."""

MIB = 1024 * 1024
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Times:
    """The times of the whole period and of each bucket, and the longest time allowed."""

    whole: Spread | None
    buckets: Sequence[tuple[Bucket, Spread | None]]
    limit_seconds: float | None


def page(report: Report) -> str:
    """The whole document."""
    found, sla_seconds = report.figures, report.sla_seconds
    totals, period = found.totals, found.period
    half_seconds = None if sla_seconds is None else sla_seconds / 2
    times = {
        "durations": Times(totals.durations, [(each, each.durations) for each in found.buckets], half_seconds),
        "arrivals": Times(totals.latency, [(each, each.latency) for each in found.buckets], sla_seconds),
    }
    active = [each for each in found.buckets if each.manifests]
    charts: dict[str, Markup | None] = dict.fromkeys(("throughput", *times))
    if len(active) >= MIN_POINTS:
        charts["throughput"] = _svg(_rates(period, found.buckets), "Input and output over time", "throughput")
        for section, title in (("durations", "Manifest duration"), ("arrivals", "Arrival to visible")):
            charts[section] = _svg(_times(period, times[section], section), f"{title} over time", section)
    return environment.get_template("page.html.j2").render(
        report=report,
        figures=found,
        totals=totals,
        cost=report.cost,
        suggest=report.suggest.marked(),
        times=times,
        charts=charts,
        active=active,
        compares=totals.at_work_seconds >= MIN_COMPARED_SHARE * period.seconds,
        has_terabyte_price=totals.input_bytes >= MIN_COMPARED_BYTES,
    )


_SECONDS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_RATES = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "bytes/s"))
_MOST_LABELS = 6
_DIGITS = re.compile(r"(?<=\.\d)\d+")  # more than pixels need
_STYLE = pygal.style.Style(label_font_size=12, major_label_font_size=12)


def _rates(period: Period, buckets: Sequence[Bucket]) -> pygal.XY:
    """Bytes per second in and out, averaged over each bucket."""
    highest = max(max(each.input_bytes, each.output_bytes) / each.seconds for each in buckets)
    divisor, unit = _unit(highest, _RATES)
    chart = _over_time("rates", period, unit)
    for name in ("input", "output"):
        steps = [
            (at.timestamp(), getattr(each, f"{name}_bytes") / each.seconds / divisor)
            for each in buckets
            for at in (each.since, each.until)
        ]
        chart.add(name, steps, fill=name == "input", show_dots=False)
    return chart


def _times(period: Period, found: Times, section: str) -> pygal.XY:
    """The 99th percentile and the median of each bucket, and the limit."""
    highest = max((each.p99_seconds for _, each in found.buckets if each), default=0.0)
    divisor, unit = _unit(max(highest, found.limit_seconds or 0.0), _SECONDS)
    chart = _over_time(f"times {section}", period, unit)
    for name in ("p99", "p50"):
        points = [
            (
                (bucket.since.timestamp() + bucket.until.timestamp()) / 2,
                getattr(each, f"{name}_seconds") / divisor if each else None,
            )
            for bucket, each in found.buckets
        ]
        chart.add(name, points, allow_interruptions=True)
    if found.limit_seconds is not None:
        ends = (period.since.timestamp(), period.until.timestamp())
        chart.add("limit", [(at, found.limit_seconds / divisor) for at in ends], show_dots=False)
    return chart


def _unit(highest: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next((each for each in units if highest >= each[0]), units[-1])


def _over_time(name: str, period: Period, unit: str) -> pygal.XY:
    return pygal.XY(
        width=720,
        height=250,
        classes=("chart", name),
        explicit_size=True,
        no_prefix=True,
        js=(),
        css=(),
        show_legend=False,
        dots_size=2.5,
        margin=4,
        margin_right=18,
        truncate_label=-1,
        max_scale=7,
        style=_STYLE,
        include_x_axis=True,
        xrange=(period.since.timestamp(), period.until.timestamp()),
        x_labels=[{"value": at.timestamp(), "label": text} for at, text in time_labels(period, _MOST_LABELS)],
        value_formatter=lambda value: f"{value:,.6g} {unit}" if value else "0",
    )


def time_labels(period: Period, most: int) -> list[tuple[datetime, str]]:
    """Round times of a period with their labels: the clock time, or the date where a day starts."""
    step_seconds = step_for(period, most)

    def label(moment: datetime) -> str:
        if step_seconds >= 90 * DAY_SECONDS:
            return f"{moment:%b %Y}"
        if not moment.timestamp() % DAY_SECONDS:
            return f"{moment.day} {moment:%b}"
        return f"{moment:%H:%M}" if not step_seconds % 60 else f"{moment:%H:%M:%S}"

    return [(each, label(each)) for each in round_moments(period, step_seconds)]


def _svg(chart: Any, title: str, section: str) -> Markup:
    """A chart with `title` as its label, described by the element with the id `SECTION-words`."""

    def finished(root: ET.Element) -> ET.Element:
        _strip(root)
        del root.attrib["id"]
        root.attrib |= {"role": "img", "aria-label": title, "aria-describedby": f"{section}-words"}
        return root

    chart.add_xml_filter(finished)
    return Markup(chart.render(is_unicode=True, disable_xml_declaration=True))  # noqa: S704 - pygal escapes names


def _strip(parent: ET.Element) -> None:
    """Remove scripts, styles and comments; turn the text that a script would show at a mark into its title."""
    parent.attrib.update({name: _DIGITS.sub("", value) for name, value in parent.attrib.items()})
    for child in list(parent):
        name = child.tag if isinstance(child.tag, str) else ""
        is_value = name == "desc" and child.get("class") == "value"
        if name in {"", "defs", "title"} or (name == "desc" and not is_value) or child.get("class") == "tooltip":
            parent.remove(child)
        elif is_value:
            child.tag = "title"
            child.attrib.clear()
        else:
            _strip(child)


def _shown(value: object) -> object:
    """The value of an expression before Jinja escapes HTML."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def coded(text: str) -> Markup:
    """Text with the parts between back-quotes as code."""
    pieces = _CODE.split(visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if number % 2 else piece for number, piece in enumerate(pieces)
    )


def moment(when: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{when:%Y-%m-%d %H:%M:%S}"


def start(since: datetime) -> str:
    """The start of a bucket, without seconds if they are zero."""
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
    "mib": lambda length_bytes: f"{length_bytes / MIB:,.4g}",
    "moment": moment,
    "n": lambda number, digits=None: f"{number:,}" if digits is None else f"{number:,.{digits}f}",
    "of": lambda part, whole: _unbroken(percent(part, whole)),
    "per": lambda length_bytes, seconds: _unbroken(rate(length_bytes, seconds)),
    "size": lambda length_bytes: _unbroken(size(length_bytes)),
    "start": start,
}
environment.globals |= {
    "DASH": DASH,
    "DEAD_LETTER_REASONS": DEAD_LETTER_REASONS,
    "PRICES_AS_OF": AS_OF,
    "REJECT_REASONS": REJECT_REASONS,
    "SHOWN_BYTES": SHOWN_BYTES,
    "SHOWN_VERSIONS": SHOWN_VERSIONS,
    "TOLERANCE": f"{100 * SIZE_TOLERANCE:g}{NO_BREAK_SPACE}%",
    "VERSION": __version__,
}

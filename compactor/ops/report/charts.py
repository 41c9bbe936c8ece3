"""Charts of the page as inline SVG, drawn by pygal and coloured by the page's own style sheet. No I/O."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

import pygal
from markupsafe import Markup

from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import Bucket, SchemaChange, Sizes, Spread
from compactor.ops.report.period import DAY_SECONDS, STEPS_SECONDS, Period, round_moments, step_for

MIB = 1024 * 1024
MAX_Y_STEPS = 4
LIMIT_IN_SIGHT = 4.0
"""A limit is drawn unless it is more than this many times the highest value, which would flatten the chart."""

LABEL_STEPS_SECONDS = sorted((*STEPS_SECONDS, 10, 120, 2 * DAY_SECONDS, 14 * DAY_SECONDS))
_SECONDS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_RATES = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "bytes/s"))
_DIGITS = re.compile(r"(?<=\.\d)\d+")  # more than pixels need
_STYLE = pygal.style.Style(label_font_size=12, major_label_font_size=12)


@dataclass(frozen=True, slots=True)
class Times:
    """What some times were like in the whole period and in each bucket, and how long they may take."""

    name: str
    whole: Spread | None
    buckets: Sequence[tuple[Bucket, Spread | None]]
    limit_seconds: float | None

    @property
    def points(self) -> int:
        """The number of buckets with such times."""
        return sum(each is not None for _, each in self.buckets)

    @property
    def highest_seconds(self) -> float:
        return max((each.p99_seconds for _, each in self.buckets if each), default=0.0)

    @property
    def is_limit_in_sight(self) -> bool:
        """Whether the limit is low enough to be drawn on the scale of the values."""
        return self.limit_seconds is not None and self.limit_seconds <= LIMIT_IN_SIGHT * self.highest_seconds


@dataclass(frozen=True, slots=True)
class Canvas:
    """A size in pixels. Each chart is drawn in both, and the page shows the one that fits."""

    name: str
    width: int
    height: int
    labels: int  # how many steps of the horizontal axis have a label


WIDE = Canvas("wide", 720, 250, 8)
NARROW = Canvas("narrow", 336, 220, 4)


def rates(canvas: Canvas, period: Period, buckets: Sequence[Bucket]) -> pygal.XY:
    """Bytes per second in and out, as the average of each bucket."""
    highest = max(max(each.input_bytes, each.output_bytes) / each.seconds for each in buckets)
    divisor, unit = _unit(highest, _RATES)
    chart = _over_time(canvas, "rates", period, highest / divisor, unit)
    for name in ("input", "output"):
        steps = [
            (at.timestamp(), getattr(each, f"{name}_bytes") / each.seconds / divisor)
            for each in buckets
            for at in (each.since, each.until)
        ]
        chart.add(name, steps, fill=name == "input", show_dots=False)
    return chart


def times(canvas: Canvas, period: Period, found: Times) -> pygal.XY:
    """The 99th percentile and the median of each bucket, and the limit if it is in sight."""
    limit_seconds = found.limit_seconds if found.is_limit_in_sight else None
    top = max(found.highest_seconds, (limit_seconds or 0.0) * 1.05)
    divisor, unit = _unit(top, _SECONDS)
    chart = _over_time(canvas, f"times {found.name}", period, top / divisor, unit)
    for name in ("p99", "p50"):
        points = [
            (
                (bucket.since.timestamp() + bucket.until.timestamp()) / 2,
                getattr(each, f"{name}_seconds") / divisor if each else None,
            )
            for bucket, each in found.buckets
        ]
        chart.add(name, points, allow_interruptions=True)
    if limit_seconds is not None:
        ends = (period.since.timestamp(), period.until.timestamp())
        chart.add("limit", [(at, limit_seconds / divisor) for at in ends], show_dots=False)
    return chart


def sizes(canvas: Canvas, found: Sizes) -> pygal.Histogram:
    """How many output files there are of each size: within and outside the tolerance of the target."""
    width = found.target_file_bytes / MIB / 8
    low, high = (found.target_file_bytes * (1 + sign * SIZE_TOLERANCE) for sign in (-1, 1))
    # Bars start at 0 and are drawn in this order, so the counted files stand in front of the sum. The last one is
    # empty: it is there so that the axis shows every bin.
    bars: dict[str, list[tuple[int, float, float]]] = {"small": [], "within": [], "outside": []}
    for number, each in enumerate(found.bins):
        ends = number * width, (number + 1) * width
        is_within = each.from_bytes >= low and each.to_bytes is not None and each.to_bytes <= high
        if each.of_small_manifests:
            bars["small"].append((each.files, *ends))
        if each.counted:
            bars["within" if is_within else "outside"].append((each.counted, *ends))
    step = (len(found.bins) - 1) // canvas.labels
    chart = _chart(
        pygal.Histogram,
        canvas,
        "sizes",
        y_ticks(max(each.files for each in found.bins), 1),
        x_labels=[_tick(number * width, "") for number in range(0, len(found.bins), step)],
        formatter=lambda value: f"{value[0]:,}",
    )
    for name, values in (*bars.items(), ("all", [(0, 0, width * len(found.bins))])):
        chart.add(name, values)
    return chart


def columns(canvas: Canvas, period: Period, changes: Sequence[SchemaChange]) -> pygal.XY:
    """The number of columns in the schema, with a dot for each version."""
    line = [(period.since.timestamp(), changes[0].columns - changes[0].added_columns)]
    dots = []
    for each in changes:
        # The clock that dated a version may have been wrong.
        at = min(max(each.created_at, period.since), period.until).timestamp()
        line += [(at, line[-1][1]), (at, each.columns)]
        dots.append({"value": line[-1], "formatter": lambda _, name=f"version {each.version}": name})
    line.append((period.until.timestamp(), line[-1][1]))
    chart = _over_time(canvas, "columns", period, max(each.columns for each in changes), "", least_step=1)
    chart.add("columns", line, show_dots=False)
    chart.add("versions", dots, stroke=False)
    return chart


def _over_time(
    canvas: Canvas, name: str, period: Period, highest: float, unit: str, *, least_step: float = 0.0
) -> pygal.XY:
    labels = [{"value": at.timestamp(), "label": text} for at, text in time_labels(period, canvas.labels)]
    span = period.since.timestamp(), period.until.timestamp()
    return _chart(pygal.XY, canvas, name, y_ticks(highest, least_step), unit, xrange=span, x_labels=labels)


def _chart(kind: type, canvas: Canvas, name: str, ticks: list[float], unit: str = "", **options: Any) -> Any:
    return kind(
        width=canvas.width,
        height=canvas.height,
        classes=("chart", canvas.name, name),
        explicit_size=True,
        no_prefix=True,
        js=(),
        css=(),
        show_legend=False,
        dots_size=2.5,
        margin=4,
        margin_right=18,
        truncate_label=-1,
        style=_STYLE,
        range=(0, ticks[-1]),
        y_labels=[_tick(each, unit if each else "") for each in ticks],
        **options,
    )


def _tick(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "label": f"{value:,.6g} {unit}".rstrip()}


def y_ticks(highest: float, least_step: float = 0.0) -> list[float]:
    """Ticks from 0 to at least `highest`, in steps of 1, 2 or 5 times a power of ten."""
    least = max((highest or 1.0) / MAX_Y_STEPS, least_step)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return [number * step for number in range(max(1, math.ceil(highest / step * (1 - 1e-9))) + 1)]


def _unit(highest: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next((each for each in units if highest >= each[0]), units[-1])


def time_labels(period: Period, max_labels: int) -> list[tuple[datetime, str]]:
    """Round times of a period, each with its label: the clock time, or the date where a day starts."""
    step_seconds = step_for(period, max_labels, LABEL_STEPS_SECONDS)

    def label(moment: datetime) -> str:
        if step_seconds >= 90 * DAY_SECONDS:
            return f"{moment:%b %Y}"
        if not moment.timestamp() % DAY_SECONDS:
            return f"{moment.day} {moment:%b}"
        return f"{moment:%H:%M}" if not step_seconds % 60 else f"{moment:%H:%M:%S}"

    return [(each, label(each)) for each in round_moments(period, step_seconds)]


def svg(draw: Callable[[Canvas], Any], title: str, section: str) -> Markup:
    """A chart in both sizes, labelled by `title` and described by the element with the id `SECTION-words`."""

    def finished(root: ET.Element) -> ET.Element:
        _strip(root)
        del root.attrib["id"]
        root.attrib |= {"role": "img", "aria-label": title, "aria-describedby": f"{section}-words"}
        return root

    drawn = []
    for canvas in (WIDE, NARROW):
        chart = draw(canvas)
        chart.add_xml_filter(finished)
        drawn.append(chart.render(is_unicode=True, disable_xml_declaration=True))
    return Markup("").join(map(Markup, drawn))


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

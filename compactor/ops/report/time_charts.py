"""Charts over time: rates, times with their limit, and a number that grows. SVG, no I/O."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from compactor.core.formatting import duration, rate
from compactor.ops.report.figures import Bucket, SchemaChange, Spread
from compactor.ops.report.frame import Canvas, Frame, drawing, line, text
from compactor.ops.report.markup import Child, Markup, element, joined
from compactor.ops.report.parts import moment
from compactor.ops.report.period import Period
from compactor.ops.report.scales import count_axis, rate_axis, seconds_axis

_GAP = 1.0  # pixels between bars
_LEAST = 1.5  # pixels that a bar is high, so that a little is not taken for nothing
_LIMIT_IN_SIGHT = 4.0
"""A limit is drawn unless it is more than so many times as high as all values, which would be flat then."""


def rates_chart(canvas: Canvas, title: str, description: str, period: Period, buckets: Sequence[Bucket]) -> Markup:
    """Bytes in as bars, bytes out as a line of steps, each as an average over its piece of the period."""
    rates_in = [each.input_bytes / each.seconds for each in buckets]
    rates_out = [each.output_bytes / each.seconds for each in buckets]
    frame = Frame.of(canvas, rate_axis(max([*rates_in, *rates_out], default=0)))
    place = frame.x_of(period)
    bars = [
        element(
            "rect",
            element(
                "title", f"{moment(each.since)} to {moment(each.until)} UTC: {rate(each.input_bytes, each.seconds)} in"
            ),
            class_="in",
            x=place(each.since) + _GAP / 2,
            width=max(place(each.until) - place(each.since) - _GAP, _GAP),
            y=min(frame.y(value), frame.bottom - _LEAST),
            height=max(frame.bottom - frame.y(value), _LEAST),
        )
        for each, value in zip(buckets, rates_in, strict=True)
        if value
    ]
    path = " ".join(
        f"{'L' if number else 'M'}{place(each.since):.1f} {frame.y(value):.1f} H{place(each.until):.1f}"
        for number, (each, value) in enumerate(zip(buckets, rates_out, strict=True))
    )
    # The halo sets the line off from bars of about the same lightness.
    outline = joined(element("path", class_=kind, d=path) for kind in ("halo", "out"))
    return drawing(canvas, "rates", title, description, [frame.grid(), *bars, outline, frame.times(period)])


def times_chart(
    canvas: Canvas,
    name: str,
    title: str,
    description: str,
    period: Period,
    spreads: Sequence[tuple[Period, Spread | None]],
    limit: tuple[str, float],
) -> Markup:
    """The middle and the tail of many times, and the limit that they should keep.

    Args:
        canvas: The size.
        name: Tells the chart from the others of the page.
        title: What it is.
        description: What it shows.
        period: All of the time.
        spreads: For each piece of the period.
        limit: What it is called, and how many seconds it is.
    """
    highest = max((each.p99_seconds for _, each in spreads if each), default=0.0)
    is_in_sight = limit[1] <= _LIMIT_IN_SIGHT * highest
    frame = Frame.of(canvas, seconds_axis(max(highest, limit[1] * 1.05) if is_in_sight else highest))
    place = frame.x_of(period)

    def points(value_of: Callable[[Spread], float]) -> list[tuple[float, float] | None]:
        middles = [(piece.since + timedelta(seconds=piece.seconds / 2), each) for piece, each in spreads]
        return [(place(middle), frame.y(value_of(each))) if each else None for middle, each in middles]

    parts = [
        frame.grid(),
        _limit(frame, *limit) if is_in_sight else _limit_out_of_sight(frame, *limit),
        _trace(points(lambda each: each.p99_seconds), "p99"),
        _trace(points(lambda each: each.p50_seconds), "p50"),
        frame.times(period),
    ]
    return drawing(canvas, name, title, description, parts)


def _limit(frame: Frame, name: str, seconds: float) -> Markup:
    y = frame.y(seconds)
    label = text(f"{name}: {duration(seconds)}", frame.right, y - 5, anchor="end", class_="limit-label")
    return joined([line(frame.left, y, frame.right, y, class_="limit"), label])


def _limit_out_of_sight(frame: Frame, name: str, seconds: float) -> Markup:
    words = f"{name}: {duration(seconds)}, far above"
    return text(words, frame.right, frame.top - 12, anchor="end", class_="limit-label")


def _trace(points: Sequence[tuple[float, float] | None], kind: str) -> Markup:
    """A line through the points that there are; it breaks where one is missing."""
    steps: list[str] = []
    for before, point in zip([None, *points], points, strict=False):
        if point:
            steps.append(f"{'L' if before else 'M'}{point[0]:.1f} {point[1]:.1f}")
    marks = [_mark(kind, *point) for point in points if point]
    return joined([element("path", class_=kind, d=" ".join(steps)) if steps else None, *marks])


def _mark(kind: str, x: float, y: float) -> Markup:
    """A dot for the middle, a diamond for the tail: told apart without colour."""
    if kind == "p50":
        return element("circle", class_="dot", cx=x, cy=y, r=2.5)
    return element("path", class_="diamond", d=f"M{x:.1f} {y - 3.5:.1f}l3.5 3.5l-3.5 3.5l-3.5-3.5z")


def columns_chart(
    canvas: Canvas, title: str, description: str, period: Period, changes: Sequence[SchemaChange]
) -> Markup:
    """How many columns the schema has, with a dot for each version of the period."""
    first = changes[0]
    frame = Frame.of(canvas, count_axis(max(each.columns for each in changes), "columns"))
    place = frame.x_of(period)
    path = f"M{frame.left:.1f} {frame.y(first.columns - first.added_columns):.1f}"
    dots: list[Child] = []
    for each in changes:
        x, y = place(_within(each.created_at, period)), frame.y(each.columns)
        path += f" H{x:.1f} V{y:.1f}"
        dots.append(element("circle", element("title", f"version {each.version}"), class_="dot", cx=x, cy=y, r=4))
    steps = element("path", class_="p50", d=f"{path} H{frame.right:.1f}")
    return drawing(canvas, "columns", title, description, [frame.grid(), steps, *dots, frame.times(period)])


def _within(when: datetime, period: Period) -> datetime:
    """The nearest moment of a period; the clock that dated a version may have been wrong."""
    return min(max(when, period.since), period.until)

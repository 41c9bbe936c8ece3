"""The frame of a chart: its size, its axes, and where values go in it. SVG, no I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.ops.report.markup import Child, Markup, element, joined
from compactor.ops.report.period import Period
from compactor.ops.report.scales import Axis, time_ticks

_CHARACTER = 7.4  # pixels at most, of the font of labels
_TOP, _BOTTOM, _RIGHT = 26.0, 38.0, 10.0


@dataclass(frozen=True, slots=True)
class Canvas:
    """One of the two sizes that every chart is drawn in; a page shows the one that fits.

    Attributes:
        name: The class that the page shows or hides it by.
        width: In pixels, as the height.
        time_ticks: Labels of times that there is room for.
    """

    name: str
    width: float
    height: float
    time_ticks: int


WIDE = Canvas("wide", 720.0, 260.0, 8)
NARROW = Canvas("narrow", 336.0, 230.0, 4)


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of a chart between its axes.

    Attributes:
        axis: The vertical axis.
        left: Pixels from the left edge of the canvas; the others likewise, from the left or the top.
    """

    canvas: Canvas
    axis: Axis
    left: float
    right: float
    top: float
    bottom: float

    @classmethod
    def of(cls, canvas: Canvas, axis: Axis) -> "Frame":
        """A frame with room for the labels of an axis."""
        left = 10 + _CHARACTER * max(map(len, axis.labels))
        return cls(canvas, axis, left, canvas.width - _RIGHT, _TOP, canvas.height - _BOTTOM)

    def y(self, value: float) -> float:
        """Where a value is; one beyond the axis is at its end."""
        return self.bottom - min(max(value / self.axis.top, 0), 1) * (self.bottom - self.top)

    def x(self, share: float) -> float:
        """Where a share of the width is, from 0 to 1."""
        return self.left + min(max(share, 0), 1) * (self.right - self.left)

    def x_of(self, period: Period) -> Callable[[datetime], float]:
        """Where the moments of a period are."""
        return lambda moment: self.x((moment - period.since).total_seconds() / period.seconds)

    def grid(self) -> Markup:
        """The horizontal lines, with what they stand for, and the unit above them."""
        parts: list[Child] = [text(self.axis.unit, self.left, self.top - 12, class_="unit")]
        for tick, label in zip(self.axis.ticks, self.axis.labels, strict=True):
            kind = "base" if tick == 0 else "grid"
            parts.append(line(self.left, self.y(tick), self.right, self.y(tick), class_=kind))
            parts.append(text(label, self.left - 6, self.y(tick) + 4, anchor="end"))
        return joined(parts)

    def times(self, period: Period) -> Markup:
        """The labels of the horizontal axis, and a mark for each."""
        place, parts = self.x_of(period), list[Child]()
        for moment, label in time_ticks(period, self.canvas.time_ticks):
            x = place(moment)
            parts.append(line(x, self.bottom, x, self.bottom + 4, class_="base"))
            for number, row in enumerate(label.split("\n")):
                half = _CHARACTER * len(row) / 2
                # A label at the edge is moved in rather than cut off.
                middle = min(max(x, half), self.canvas.width - half)
                parts.append(text(row, middle, self.bottom + 17 + 14 * number, anchor="middle"))
        return joined(parts)


def text(content: str, x: float, y: float, *, anchor: str | None = None, class_: str | None = None) -> Markup:
    """A label; `y` is where its letters stand."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def drawing(canvas: Canvas, name: str, title: str, description: str, parts: Sequence[Child]) -> Markup:
    """A chart as an image with words for who cannot see it.

    Args:
        canvas: Its size.
        name: Tells it from all others of the page.
        title: What it is.
        description: What it shows.
        parts: What is drawn.
    """
    key = f"{name}-{canvas.name}"
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        *parts,
        class_=f"chart {canvas.name}",
        role="img",
        aria_labelledby=f"{key}-title",
        aria_describedby=f"{key}-desc",
        viewBox=f"0 0 {canvas.width:g} {canvas.height:g}",
        width=canvas.width,
        height=canvas.height,
    )


def in_both_sizes(draw: Callable[[Canvas], Markup]) -> Markup:
    """A chart twice, for wide and for narrow windows: text has the same size in both."""
    return joined([draw(WIDE), draw(NARROW)])

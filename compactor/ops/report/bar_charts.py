"""Charts of amounts: the sizes of files, and bars with their names. SVG, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.ledger.sizing import SIZE_TOLERANCE
from compactor.ops.report.figures import SizeBin, Sizes
from compactor.ops.report.frame import NARROW, Canvas, Frame, drawing, line, text
from compactor.ops.report.markup import Child, Markup, element, joined
from compactor.ops.report.scales import count_axis

MIB = 1024 * 1024
_ROW = 42.0  # pixels of a named bar with its name
_BAR = 14.0
_CHARACTER = 8.0


def sizes_chart(canvas: Canvas, title: str, description: str, sizes: Sizes) -> Markup:
    """How many files there are of each size, over the band that they should be in."""
    highest = max(each.counted + each.of_small_manifests for each in sizes.bins)
    frame = Frame.of(canvas, count_axis(highest, "files"))
    count = len(sizes.bins)
    hatch = f"hatch-{canvas.name}"
    parts: list[Child] = [_hatching(hatch), _band(frame, sizes), frame.grid()]
    parts += [
        _bin_bars(frame, number / count, (number + 1) / count, each, hatch) for number, each in enumerate(sizes.bins)
    ]
    return drawing(canvas, "sizes", title, description, [*parts, _size_labels(frame, sizes)])


def _share(sizes: Sizes, size_bytes: float) -> float:
    """Where a size is on the horizontal axis, from 0 to 1. All bins are drawn as wide as the first."""
    width = (sizes.bins[0].to_bytes or sizes.target_bytes) * len(sizes.bins)
    return size_bytes / width


def _band(frame: Frame, sizes: Sizes) -> Markup:
    start, end = (frame.x(_share(sizes, sizes.target_bytes * (1 + sign * SIZE_TOLERANCE))) for sign in (-1, 1))
    return joined(
        [
            element("rect", class_="band", x=start, width=end - start, y=frame.top, height=frame.bottom - frame.top),
            line(start, frame.top, start, frame.bottom, class_="band-edge"),
            line(end, frame.top, end, frame.bottom, class_="band-edge"),
            text(
                f"target ± {100 * SIZE_TOLERANCE:g} %",
                (start + end) / 2,
                frame.top - 8,
                anchor="middle",
                class_="band-label",
            ),
        ]
    )


def _hatching(key: str) -> Markup:
    stripe = element("path", class_="hatch-line", d="M-1 1l2-2M0 6l6-6M5 7l2-2")
    pattern = element("pattern", stripe, id=key, width=6, height=6, patternUnits="userSpaceOnUse")
    return element("defs", pattern)


def _bin_bars(frame: Frame, start: float, end: float, sizes: SizeBin, hatch: str) -> Markup:
    """Files that count, and on top of them those that nobody could size."""
    x, width = frame.x(start) + 1, frame.x(end) - frame.x(start) - 2
    middle = frame.y(sizes.counted)
    top = frame.y(sizes.counted + sizes.of_small_manifests)
    counted = element("rect", class_="in", x=x, width=width, y=middle, height=frame.bottom - middle)
    small = element("rect", class_="small", x=x, width=width, y=top, height=middle - top, fill=f"url(#{hatch})")
    return joined([counted if sizes.counted else None, small if sizes.of_small_manifests else None])


def _size_labels(frame: Frame, sizes: Sizes) -> Markup:
    target = sizes.target_bytes
    quarters = (0, 2, 4, 6, 8) if frame.canvas is NARROW else range(9)
    parts: list[Child] = []
    for quarter in quarters:
        size_bytes = target * quarter / 4
        x = frame.x(_share(sizes, size_bytes))
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, class_="base"))
        parts.append(text(f"{size_bytes / MIB:,.4g}", x, frame.bottom + 17, anchor="middle"))
    parts.append(text("size in MiB; the last bar: larger", frame.right, frame.bottom + 32, anchor="end", class_="unit"))
    return joined(parts)


@dataclass(frozen=True, slots=True)
class NamedBar:
    """A bar with its name; `shown` is its amount in words."""

    name: str
    amount: float
    shown: str


def bars_chart(canvas: Canvas, name: str, title: str, description: str, bars: Sequence[NamedBar]) -> Markup:
    """Amounts under each other, each below its name."""
    size = Canvas(canvas.name, canvas.width, _ROW * len(bars) + 4, canvas.time_ticks)
    highest = max((bar.amount for bar in bars), default=0) or 1
    parts: list[Child] = []
    for number, bar in enumerate(bars):
        y = _ROW * number + 16
        room = int((size.width - _CHARACTER * (len(bar.shown) + 2)) / _CHARACTER)
        parts.append(text(_cut(bar.name, room), 0, y, class_="bar-name"))
        parts.append(text(bar.shown, size.width, y, anchor="end", class_="bar-amount"))
        width = max(2.0, bar.amount / highest * size.width) if bar.amount else 0.0
        parts.append(element("rect", class_="track", x=0, y=y + 6, width=size.width, height=_BAR))
        parts.append(element("rect", class_="in", x=0, y=y + 6, width=width, height=_BAR))
    return drawing(size, name, title, description, parts)


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: max(1, room - 1)]}…"

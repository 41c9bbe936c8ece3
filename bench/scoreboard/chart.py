"""The chart of the README: CPU seconds a GB on one set, as SVG for light and for dark pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bench.scoreboard.figures import Figure

SET = "events"
LABELS: Mapping[str, str] = {
    "compactor_native": "compactor, job, native engine",
    "compactor": "compactor, one call of compact",
    "clickhouse_columns": "ClickHouse, columns given",
    "clickhouse_union": "ClickHouse, columns of all files",
    "duckdb_columns": "DuckDB, columns given",
    "duckdb_union": "DuckDB, columns of all files",
    "polars": "Polars",
    "compactor_spark": "compactor, job, Spark engine",
    "spark": "Spark, inferred types",
}
"""The contenders of the chart, as people call them."""

COLOURS = {  # page, text, bars of others, bars of the compactor
    "light": ("#ffffff", "#1f2328", "#afb8c1", "#0969da"),
    "dark": ("#0d1117", "#e6edf3", "#484f58", "#4493f8"),
}
_WIDTH, _LEFT, _ROW, _BAR, _TOP = 720, 270, 26, 16, 44
_ROOM = 70  # right of the longest bar, for its number


@dataclass(frozen=True, slots=True, order=True)
class Bar:
    """The CPU seconds for 10^9 bytes that a contender takes; `loses` tells that it loses late keys."""

    cpu_seconds_per_gb: float
    contender: str
    loses: bool


def bars(figures: Sequence[Figure]) -> list[Bar]:
    """The bars of the contenders that were timed on the set of the chart."""
    return [
        Bar(each.cpu_seconds_per_gb, each.contender, loses=bool(each.account and each.account.losses()))
        for each in figures
        if each.data_set == SET and each.contender in LABELS and each.cpu_seconds_per_gb is not None
    ]


def chart(shown: Sequence[Bar], theme: str) -> str:
    """Draw the bars as SVG, the fewest CPU seconds first. The theme is a key of `COLOURS`."""
    page, text, others, own = COLOURS[theme]
    timed = sorted(shown)
    scale = (_WIDTH - _LEFT - _ROOM) / timed[-1].cpu_seconds_per_gb
    height = _TOP + _ROW * (len(timed) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"',
        f' viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="{page}"/>',
        f'<text x="12" y="24" font-size="15" font-weight="600" fill="{text}">CPU seconds for 1 GB of events</text>',
    ]
    for row, bar in enumerate(timed):
        y, width = _TOP + row * _ROW, bar.cpu_seconds_per_gb * scale
        is_own = bar.contender.startswith("compactor")
        label = escape(LABELS[bar.contender]) + (" *" if bar.loses else "")
        colour = own if is_own else others
        weight = ' font-weight="600"' if is_own else ""
        lines += [
            f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end" fill="{text}"{weight}>{label}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2" fill="{colour}"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{y + 13}" fill="{text}"{weight}>{bar.cpu_seconds_per_gb:.1f}</text>',
        ]
    note = f'<text x="12" y="{height - 10}" font-size="12" fill="{text}">* loses keys that appear late</text>'
    return "\n".join([*lines, note, "</svg>\n"])

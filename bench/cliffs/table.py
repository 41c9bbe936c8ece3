"""The table of `make bench-cliffs`, and what it comes to."""

from collections.abc import Mapping, Sequence

from bench.cliffs.points import Point
from bench.cliffs.rule import exponent, growth
from bench.cliffs.search import Cliff, Search

PASSED, FAILED = 0, 1
"""The exit codes."""


def lines(engine: str, search: Search, shown: int) -> list[str]:
    """The slowest shapes of an engine, and those whose growth was measured."""
    sizes = [f"{size / 1e6:,.0f} MB" for size in search.sizes]
    head = f"{engine:<8}" + "".join(f" {size:>9}" for size in sizes) + f"{'growth':>9}{'power':>7}  shape, CPU s/GB"
    first = search.sizes[0]
    by_cost = sorted(search.costs, key=lambda point: search.costs[point].get(first, 0.0), reverse=True)
    grown = [point for point in search.costs if len(search.costs[point]) == len(sizes)]
    chosen = [*by_cost[:shown], *(point for point in grown if point not in by_cost[:shown])]
    files = [f"{seconds * 1e3 / count:,.1f} ms of {count:,}" for count, seconds in search.file_seconds.items()]
    said = [f"{'':<8} a file of one line: {', '.join(files)}"] if files else []
    return [head, *(_line(point, search) for point in chosen), *said]


def _line(point: Point, search: Search) -> str:
    costs = search.costs[point]
    cells = [f" {costs[size] * 1e9 / size:>9,.1f}" if size in costs else f" {'-':>9}" for size in search.sizes]
    grows = f"{'-':>9}{'-':>7}"
    if len(costs) > 1:
        grows = f"{growth(costs, search.floor_seconds):>9.2f}{exponent(costs, search.floor_seconds):>7.2f}"
    return f"{'':<8}{''.join(cells)}{grows}  {point.name}"


def closing(cliffs: Mapping[str, Sequence[Cliff]], measured: int) -> tuple[int, list[str]]:
    """The exit code, and the sentences that say why."""
    found = [f"CLIFF: {engine}: {each.point.name}: {each.why}" for engine, some in cliffs.items() for each in some]
    if found:
        return FAILED, [*found, f"FAILED: {len(found)} of {measured} shapes cost too much."]
    return PASSED, [f"Passed: none of {measured} shapes costs over 4 times its neighbours, or grows with its size."]

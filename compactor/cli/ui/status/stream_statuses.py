"""Shows the status of several streams: a line for each, one for all, and the next actions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.cli.ui.console import SafeConsole
from compactor.cli.ui.output import table_of
from compactor.cli.ui.terminal import echo
from compactor.control.releases import differing
from compactor.core.text.safe_text import visible
from compactor.ops.status.values import Status

Statuses = Mapping[str, Status]
"""The status of each stream, by its name."""

LEAST_WIDTH = 80


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the table: a stream, or all of them."""

    name: str
    state: str
    waiting: int
    oldest_seconds: float
    p99_seconds: float | None
    rejects: int
    dead: int
    files: int
    columns: str
    release: str


def show_statuses(found: Statuses, canary: str) -> None:
    """Print the state of each stream and of all, and the next actions.

    `canary` is the stream whose job takes a release first; empty if there is none.
    """
    SafeConsole().print(_table(found))
    for line in _notes(found, canary):
        echo(line)


def streams_screen(
    found: Statuses,
    *,
    canary: str,
    width: int = LEAST_WIDTH,
    height: int = 0,  # noqa: ARG001 - a terminal that is too low cuts the end
    error: str = "",
) -> RenderableType:
    """The same as one screen, with its time; `error` says why nothing newer could be read."""
    as_of = max(each.as_of for each in found.values())
    failed = [Text(f"Cannot read the status: {error}", "bold red")] if error else []
    head = Text(f"{as_of:%Y-%m-%d %H:%M:%S} UTC".rjust(max(width, LEAST_WIDTH)), "dim")
    return Group(head, *failed, _table(found), *map(Text, _notes(found, canary)))


def _table(found: Statuses) -> RenderableType:
    lines = [_line(name, each) for name, each in found.items()]
    figures: dict[str, Callable[[_Line], str]] = {
        "stream": lambda each: each.name,
        "state": lambda each: each.state,
        "waiting": lambda each: f"{each.waiting:,}",
        "oldest, s": lambda each: f"{each.oldest_seconds:,.0f}",
        "p99, s": lambda each: "-" if each.p99_seconds is None else f"{each.p99_seconds:,.0f}",
        "rejects": lambda each: f"{each.rejects:,}",
        "dead": lambda each: f"{each.dead:,}",
        "files": lambda each: f"{each.files:,}",
        "columns": lambda each: each.columns,
    }
    if differing({name: _releases(each) for name, each in found.items()}):
        figures["release"] = lambda each: each.release
    return table_of(figures, [*lines, _all(lines)], names=2)


def _line(name: str, found: Status) -> _Line:
    return _Line(
        name,
        found.state.word.replace("_", " "),
        found.backlog.manifests + found.backlog.begun_manifests,
        found.backlog.oldest_seconds,
        found.latency.p99_seconds if found.latency else None,
        found.rejects.lines,
        found.dead_letters.open,
        found.quarantined_files.open,
        f"{found.schema.columns:,}",
        visible(" ".join(_releases(found))) or "-",
    )


def _all(lines: list[_Line]) -> _Line:
    """The sums, the longest wait and the highest p99; what cannot be added is left out."""
    return _Line(
        "all",
        "",
        sum(each.waiting for each in lines),
        max(each.oldest_seconds for each in lines),
        max((each.p99_seconds for each in lines if each.p99_seconds is not None), default=None),
        sum(each.rejects for each in lines),
        sum(each.dead for each in lines),
        sum(each.files for each in lines),
        "",
        "",
    )


def _releases(found: Status) -> list[str]:
    return sorted({run.release for run in found.runs if run.release})


def _notes(found: Statuses, canary: str) -> Iterator[str]:
    for name, each in found.items():
        if each.state.next_move:
            yield f"{name}: {each.state.reason}"
            yield f"  next: {each.state.next_move}"
    if apart := differing({name: _releases(each) for name, each in found.items()}, canary):
        yield visible(apart.found)
        yield f"  next: {apart.next_move}"

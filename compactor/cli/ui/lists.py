"""Prints lists that may be long: the first entries, and how many more there are."""

from collections.abc import Sequence

from compactor.cli.ui.terminal import echo, fitted

SHOWN = 20  # of each list; --json shows all


def show_list(entries: Sequence[tuple[str, ...]], *, title: str = "", spaced: bool = False) -> None:
    """Print entries, each with its further lines below it.

    Args:
        entries: The lines of each.
        title: Printed before them, if there are any.
        spaced: Whether an empty line precedes each.
    """
    gap = [""] if spaced else []
    if entries and title:
        echo("", title)
    for first, *others in entries[:SHOWN]:
        head, *more = fitted(first, indent=4)
        lines = [*more, *(piece for each in others for piece in fitted(each, indent=4))]
        echo(*gap, f"  {head}", *(f"    {each}" for each in lines))
    for line in more_of(len(entries)):
        echo(*gap, f"  {line}")


def show_lines(lines: Sequence[str]) -> None:
    """Print entries of one line each."""
    show_list([(each,) for each in lines])


def more_of(number: int) -> list[str]:
    """How many of a number of entries are not shown; none if all are."""
    return [f"and {number - SHOWN:,} more; --json shows all"] if number > SHOWN else []

"""The lines by which tools read the whole output."""

from collections.abc import Sequence

from compactor.cli.ui.terminal import echo


def show_reading(lines: Sequence[str]) -> None:
    """Print a line for each tool."""
    if lines:
        echo("", *(f"{'' if number else 'read it':12}{line}" for number, line in enumerate(lines)))

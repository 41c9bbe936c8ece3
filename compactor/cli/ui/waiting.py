"""What shows on a terminal that a command is at work, while it has nothing else to show."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show a text on stderr while the context is open, if stderr is a terminal; the value shows another text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415 - rich is slow to load

    with SafeConsole(stderr=True).status(text) as status:
        yield status.update

"""What shows on a terminal that a command is at work, while it has nothing else to show."""

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compactor.core.formatting import count


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show a text on stderr while the context is open, if stderr is a terminal; the value shows another text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from compactor.cli.ui.console import SafeConsole  # noqa: PLC0415 - rich is slow to load

    with SafeConsole(stderr=True).status(text) as status:
        yield status.update


def counter(show: Callable[[str], None]) -> Callable[[], None]:
    """Shows how many manifests were verified, after each of them."""
    checked = itertools.count(1)
    return lambda: show(f"verified {count(next(checked), 'manifest')}")

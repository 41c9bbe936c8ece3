"""The console for tables, progress and screens, which shows text from outside as `echo` does."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from compactor.core.safe_text import visible


class _Stderr:
    """Writes to stderr. What cannot be written is dropped, because progress stops no command."""

    def __init__(self) -> None:
        # While a display is live, it stands in place of sys.stderr.
        self._stream: TextIO = getattr(sys.stderr, "rich_proxied_file", sys.stderr)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class SafeConsole(Console):
    """A console that escapes what acts on a terminal, except for its own styles and cursor movements."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(file=cast("TextIO", _Stderr()) if stderr else None, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable. Line feeds separate its lines: names must be escaped before they get in."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                text = "\n".join(map(visible, segment.text.split("\n")))
                yield Segment(text, segment.style)

"""The console for tables, progress and screens, which shows external text as `echo` does."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from compactor.cli.ui.terminal import writing_to_stdout
from compactor.core.text.safe_text import visible


class SafeConsole(Console):
    """A console that escapes everything that acts on a terminal, except for its own styles and cursor movements."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, as `rich` does.

        Raises:
            StoreUnavailable: Stdout is not writable.
        """
        with writing_to_stdout():
            super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable. Line feeds separate its lines, so names must be escaped earlier."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text = "\n".join(map(visible, segment.text.split("\n")))
                yield Segment(text, segment.style)

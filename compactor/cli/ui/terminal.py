"""Writes lines to stdout and stderr: the only way in which commands print text with external names."""

import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

import click

from compactor.core.errors import StoreUnavailable
from compactor.core.text.safe_text import visible

_LEAST_ROOM = 20
"""Words need at least this many columns; in narrower terminals, lines break anywhere."""


class _Output(FileIO):
    """Stdout or stderr. If the reader has closed it, as after `| head`, output is discarded without an error.

    Args:
        number: The file descriptor.
        is_optional: Also discard output on other errors, such as a full disk.
    """

    def __init__(self, number: int, *, is_optional: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self.has_reader = True
        self._is_optional = is_optional

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.has_reader = False
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self.fileno())
            os.close(devnull)
        except OSError:
            if not self._is_optional:
                raise
        return memoryview(data).nbytes


def echo(*lines: str, err: bool = False, mark: str = "") -> None:
    """Print lines. Each argument stays one line, because `visible` also escapes line feeds.

    Args:
        lines: None prints an empty line.
        err: Print on stderr.
        mark: A styled word before the first line, from the command itself.

    Raises:
        StoreUnavailable: Stdout is not writable.
    """
    text = mark + "\n".join(map(visible, lines))  # guard: what commands print is escaped
    if err:
        click.echo(text, err=True)
    else:
        write_out(text)


def terminal_columns() -> int | None:
    """The width of the terminal that shows stdout, directly or through a pager; None if there is none."""
    for stream in (1, 2, 0):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns
    return None


def fitted(text: str, *, indent: int) -> list[str]:
    """Divide a text for people into lines that fit the terminal, if stdout is one.

    Args:
        text: It breaks only between words, so paths and URIs without spaces can be copied.
        indent: The columns before each line, printed by the caller.
    """
    columns = terminal_columns() if sys.stdout.isatty() else None
    room = (columns or 0) - indent
    if room < _LEAST_ROOM or len(text) <= room:
        return [text]
    return textwrap.wrap(visible(text), room, break_long_words=False, break_on_hyphens=False)


def write_out(data: str | bytes, *, nl: bool = True) -> None:
    """Write safe text or bytes to stdout; with a line feed unless `nl` is false.

    Raises:
        StoreUnavailable: Stdout is not writable.
    """
    with writing_to_stdout():
        click.echo(data, nl=nl)


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Turn system errors, such as a full disk, into a compactor error.

    Raises:
        StoreUnavailable: Stdout is not writable.
    """
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"cannot write to stdout: {exc.strerror}") from exc


def has_reader() -> bool:
    """Whether later output may reach a reader. If not, an endless command must end itself."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Output) or raw.has_reader


def open_standard_streams() -> None:
    """Replace a closed stdin, stdout or stderr with the null device, and escape characters that they cannot encode.

    Otherwise a command without them would fail, or the next file that it opens would get the number of stderr and
    receive error messages. A reader that closes stdout or stderr affects neither the work nor the exit code.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode = os.O_RDONLY if name == "stdin" else os.O_WRONLY
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, mode)  # the lowest free number
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            output = BufferedWriter(_Output(number, is_optional=name == "stderr"))
            line_buffering = stream.line_buffering or name == "stderr"
            text = TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=line_buffering)
            setattr(sys, name, text)


def flush_stdout() -> None:
    """Write buffered stdout, or discard it on failure, which would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Writes lines to stdout and stderr: the one way by which commands print text that may hold names from outside."""

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
"""Fewer columns are not enough for words: then the terminal may break the line where it likes."""


class _Output(FileIO):
    """Stdout or stderr, which a gone reader does not fail: as after `| head`, what it would have read is discarded.

    Args:
        number: The file descriptor.
        is_optional: Also discard what cannot be written for another reason, such as a full disk.
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
    """Print lines. Each argument stays one line whatever it holds, for `visible` escapes line feeds in it, too.

    Args:
        lines: None prints an empty line.
        err: Print on stderr.
        mark: A styled word of the command's own before the first line.

    Raises:
        StoreUnavailable: Stdout cannot be written to.
    """
    text = mark + "\n".join(map(visible, lines))  # guard: what commands print is escaped
    if err:
        click.echo(text, err=True)
    else:
        write_out(text)


def terminal_columns() -> int | None:
    """The width of the terminal that shows stdout, directly or by a pager; None if there is none."""
    for stream in (1, 2, 0):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns
    return None


def fitted(text: str, *, indent: int) -> list[str]:
    """Divide a text for people into lines that fit the terminal, if stdout is one.

    Args:
        text: It is divided between words only, so a path or a URI without spaces can be copied.
        indent: The columns before each line, which the caller prints.
    """
    columns = terminal_columns() if sys.stdout.isatty() else None
    room = (columns or 0) - indent
    if room < _LEAST_ROOM or len(text) <= room:
        return [text]
    return textwrap.wrap(visible(text), room, break_long_words=False, break_on_hyphens=False)


def write_out(data: str | bytes, *, nl: bool = True) -> None:
    """Write text that is safe to show, or bytes, to stdout; with a line feed unless `nl` is false.

    Raises:
        StoreUnavailable: Stdout cannot be written to.
    """
    with writing_to_stdout():
        click.echo(data, nl=nl)


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Turn what the system refuses, as on a full disk, into an error of the compactor.

    Raises:
        StoreUnavailable: Stdout cannot be written to.
    """
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"cannot write to stdout: {exc.strerror}") from exc


def has_reader() -> bool:
    """Whether a later write to stdout may reach a reader. If not, an endless command has to end itself."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Output) or raw.has_reader


def open_standard_streams() -> None:
    """Put the null device in place of a closed stdin, stdout or stderr, and show what they cannot encode as escapes.

    Else a command without them would fail, or the next file that it opens would take the number of stderr and receive
    error messages. A reader of stdout or stderr that goes away changes neither the work nor the exit code.
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
    """Write what stdout still holds, or discard it if it cannot be written: it would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

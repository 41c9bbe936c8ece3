"""Writes lines to stdout and stderr: the one way by which commands print text that may hold names from outside."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

import click

from compactor.core.errors import StoreUnavailable
from compactor.core.safe_text import visible


def echo(*lines: str, err: bool = False, mark: str = "") -> None:
    """Print lines. Each argument stays one line whatever it holds, for `visible` escapes line feeds in it, too.

    Args:
        lines: None prints an empty line.
        err: Print on stderr. A stderr that cannot be written to stops no command.
        mark: A styled word of the command's own before the first line.

    Raises:
        StoreUnavailable: Stdout cannot be written to.
    """
    text = mark + "\n".join(map(visible, lines))
    if not err:
        write_out(text)
        return
    with suppress(OSError):
        click.echo(text, err=True)


def write_out(data: str | bytes, *, nl: bool = True) -> None:
    """Write text that is safe to show, or bytes, to stdout; with a line feed unless `nl` is false.

    Raises:
        BrokenPipeError: The reader of stdout is gone.
        StoreUnavailable: Stdout cannot be written to.
    """
    try:
        click.echo(data, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise StoreUnavailable(f"cannot write to stdout: {exc.strerror}") from exc


def open_standard_streams() -> None:
    """Put the null device in place of a closed stdin, stdout or stderr, and show what they cannot encode as escapes.

    Else a command without them would fail, or the next file that it opens would take the number of stderr and receive
    error messages.
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_stdout() -> None:
    """Write what stdout still holds, or discard it if it cannot be written: it would change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

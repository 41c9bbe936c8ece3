"""The argument DST of commands: the folder that `compact` wrote, which says where the settings are."""

import os
from collections.abc import Callable
from typing import Any

import click

from compactor.cli.invocation import DESTINATION, Invocation


def destination_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command without other arguments the argument `[DST]`."""
    return click.argument(DESTINATION, required=False, metavar="[DST]")(command)


def is_output(word: str) -> bool:
    """Return whether a word is the local DST of an earlier `compact`, whose settings are there."""
    from compactor.wiring.settings_files import is_output as has_settings  # noqa: PLC0415 - pydantic is slow

    return has_settings(word, os.environ)


def taken_destination(
    invocation: Invocation, words: tuple[str, ...], *, most: int | None = None
) -> tuple[Invocation, tuple[str, ...]]:
    """Take DST off the words of a command, if they begin with it.

    Args:
        invocation: With `--config`, no word is DST.
        words: What the user wrote behind the command.
        most: How many words the command may have beside DST; None for any number.

    Raises:
        click.UsageError: There are too many words.
    """
    from compactor.wiring.settings_files import is_destination  # noqa: PLC0415 - pydantic is slow to load

    if most is not None and len(words) > most + 1:
        raise click.UsageError(f"{words[-1]}: expected at most DST and {most} more")
    if words and (most is not None and len(words) > most):
        return invocation.at(words[0]), words[1:]
    if not words or invocation.config is not None:
        return invocation, words
    # Without any other settings, the word can only be meant as DST.
    if is_destination(words[0], os.environ) or not invocation.has_settings:
        return invocation.at(words[0]), words[1:]
    return invocation, words

"""Parameters that several commands have: DST, whose folder has the settings, and numbers, days and times."""

import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from compactor.cli.invocation import DESTINATION, Invocation


class FiniteRange(click.FloatRange):
    """A range of finite numbers. click takes `nan` for a number in any range, and `inf` in one without an end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def moment(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime | None:
    """Parse the value of an option; a time without a zone is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise click.BadParameter(f"{value!r} is not a time; expected ISO 8601, as in 2025-12-21T10:00:00Z") from exc


def calendar_day(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Check that the value of an option is a day."""
    from compactor.api.arguments import date_fault  # noqa: PLC0415 - pydantic is slow to load

    if value is not None and (fault := date_fault(value)):
        raise click.BadParameter(fault)
    return value


date_option = click.option("--date", "day", metavar="YYYY-MM-DD", callback=calendar_day, help="Take only this day.")


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
